// What was recorded: the season over time, balances, and the ledger's last lines, equal ones in one row.

import { bars, lines } from "/draw.js";
import { count, money } from "/page.js";

const at = (id) => document.getElementById(id);
const MOST_LINES = 6, MOST_BALANCES = 20, MOST_ROWS = 12;
const clock = (time) => new Date(time).toLocaleTimeString("en-GB");

// Rounds that served each agent, at each point of the history and now.
export function drawHistory(history, progress) {
  const now = progress.agents.map((agent) => agent.arms.reduce((sum, arm) => sum + arm.decisions, 0));
  const points = history.points.filter((point) => point.decisions.length);
  const place = at("history");
  if (points.length < 2) {
    place.replaceChildren(Object.assign(document.createElement("figcaption"), { textContent: history.points.length < 2 ? "There is nothing to draw yet." : "There are too many agents to tell them apart here." }));
    return;
  }
  const order = history.agents.map((name, number) => ({ name, number, last: now[number] ?? 0 })).sort((one, other) => other.last - one.last);
  const series = order.slice(0, MOST_LINES).map(({ name, number }) => ({
    name,
    points: points.map((point) => [point.at, point.decisions[number] ?? 0]),
  }));
  const left = order.length - MOST_LINES;
  const more = left > 1 ? ` The ${left} agents with the fewest are not drawn.` : left === 1 ? " The agent with the fewest is not drawn." : "";
  const [first, last] = [points[0], points[points.length - 1]];
  lines(place, series, `Rounds of this season that served each agent, from ${clock(first.at)} to ${clock(last.at)}: the steeper, the more of the traffic. Paid in this time: ${money(last.paid - first.paid)}.${more}`, clock, "rounds");
}

export function drawBalances(agents) {
  const order = [...agents].sort((one, other) => other.balance - one.balance);
  const rows = order.slice(0, MOST_BALANCES).map((agent) => ({ name: agent.agent, value: agent.balance / 1e6, text: money(agent.balance) }));
  const rest = order.slice(MOST_BALANCES).reduce((sum, agent) => sum + agent.balance, 0);
  const more = order.length > MOST_BALANCES ? ` The ${order.length - MOST_BALANCES} agents with the lowest have ${money(rest)} together.` : "";
  bars(at("balances"), rows, `What each agent was paid over all seasons.${more}`);
}

// Neighbours that differ in nothing but number, time and value, together.
export function fold(entries) {
  const groups = [];
  for (const entry of entries) {
    const own = JSON.stringify([entry.kind, entry.agent, entry.arm, entry.phase, entry.because]);
    const last = groups[groups.length - 1];
    if (last && last.own === own && entry.agent !== undefined) last.entries.push(entry);
    else groups.push({ own, entries: [entry] });
  }
  return groups.map((group) => group.entries);
}

function told(entries) {
  const first = entries[0];
  if (first.kind === "decision") return first.phase;
  if (first.value === undefined) return "";
  const values = entries.map((entry) => entry.value), low = Math.min(...values), high = Math.max(...values);
  if (low === high) return String(low);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return `mean ${mean.toFixed(2)}`;
}

export function drawLedger(lines) {
  const columns = ["entries", "time", "what", "agent", "arm", "value"];
  const groups = fold(lines.map((line) => line.entry)).slice(-MOST_ROWS).reverse();
  at("ledger").tBodies[0].replaceChildren(...groups.map((entries) => {
    const row = document.createElement("tr"), first = entries[0], last = entries[entries.length - 1], many = entries.length > 1;
    const numbers = many ? `${count.format(first.n)}–${count.format(last.n)}` : count.format(first.n);
    const what = many ? `${entries.length} × ${first.kind}` : first.kind;
    [numbers, clock(last.at), what, first.agent ?? "", first.arm ?? "", told(entries)].forEach((text, number) => {
      const cell = document.createElement(number ? "td" : "th");
      if (number) cell.dataset.column = columns[number];
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  }));
}
