// What was recorded: balances, and the ledger's last lines, equal ones in one row.

import { bars } from "/draw.js";
import { count, money } from "/page.js";

const at = (id) => document.getElementById(id);
const MOST_BALANCES = 20, MOST_ROWS = 12;
const clock = (time) => new Date(time).toLocaleTimeString("en-GB");

export function drawBalances(agents) {
  const order = [...agents].sort((one, other) => other.balance - one.balance);
  const rows = order.slice(0, MOST_BALANCES).map((agent) => ({ name: agent.agent, value: agent.balance / 1e6, text: money(agent.balance) }));
  const rest = order.slice(MOST_BALANCES).reduce((sum, agent) => sum + agent.balance, 0);
  const more = order.length > MOST_BALANCES ? ` The ${order.length - MOST_BALANCES} agents with the lowest have ${money(rest)} together.` : "";
  bars(at("balances"), rows, `What each agent was paid over all seasons.${more}`);
}

// What each place of the last page showed; places that stayed empty are rows too.
export function drawPlaces(last) {
  at("places-part").hidden = !last;
  if (!last) return;
  const rows = [...last.decisions, ...last.empty.map((place) => ({ place, agent: "(empty)", arm: "", phase: "" }))];
  rows.sort((one, other) => one.place - other.place);
  at("places").tBodies[0].replaceChildren(...rows.map((one) => tableRow([String(one.place), one.agent, one.arm, one.phase], ["", "agent", "arm", "phase"])));
  at("places-words").textContent = `Request ${last.request_id}${last.segment ? ` in segment ${last.segment}` : ""}. Under the reservoir tests take the last place that is filled, and those in front go to agents by the best of their finished tests.`;
}

function tableRow(texts, columns) {
  const row = document.createElement("tr");
  texts.forEach((text, number) => {
    const cell = document.createElement(number ? "td" : "th");
    if (number) cell.dataset.column = columns[number];
    cell.textContent = text;
    row.append(cell);
  });
  return row;
}

// Neighbours that differ in nothing but number, time and value, together.
export function fold(entries) {
  const groups = [];
  for (const entry of entries) {
    const own = JSON.stringify([entry.kind, entry.agent, entry.arm, entry.phase, entry.because, entry.segment]);
    const last = groups[groups.length - 1];
    if (last && last.own === own && entry.agent !== undefined) last.entries.push(entry);
    else groups.push({ own, entries: [entry] });
  }
  return groups.map((group) => group.entries);
}

function told(entries) {
  const first = entries[0];
  if (first.kind === "slate") return `page of ${first.shown.length}${first.segment ? ` in ${first.segment}` : ""}`;
  if (first.kind === "decision") return first.segment ? `${first.phase} in ${first.segment}` : first.phase;
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
    const first = entries[0], last = entries[entries.length - 1], many = entries.length > 1;
    const numbers = many ? `${count.format(first.n)}–${count.format(last.n)}` : count.format(first.n);
    const what = many ? `${entries.length} × ${first.kind}` : first.kind;
    return tableRow([numbers, clock(last.at), what, first.agent ?? "", first.arm ?? "", told(entries)], columns);
  }));
}
