// "What would a copy earn?": the question from the sliders, the audit's answer as a figure and a table.

import { BLUE, GREY, ORANGE, bars } from "/draw.js";
import { ask, here } from "/page.js";

const at = (id) => document.getElementById(id);
const SLIDERS = ["low", "high", "chance", "originals", "agents", "odds", "most"];
const VERDICT = { exploitable: "Exploitable", "clone-proof": "Clone-proof", undecided: "Undecided" };
let prepared = false;

const value = (id) => Number(at(id).value);
const odds = () => Number((10 ** value("odds")).toPrecision(2));

function readout() {
  for (const id of SLIDERS) {
    const text = id === "odds" ? String(odds()) : id === "chance" ? `${Math.round(100 * value(id))} %` : at(id).value;
    at(id).nextElementSibling.textContent = text;
    at(id).setAttribute("aria-valuetext", text);
  }
}

const kind = () => at("question").elements.kind.value;

function toggle() {
  at("belief").hidden = kind() !== "belief";
  at("fitted").hidden = kind() !== "fitted";
}

// Called whenever the agents of the market are known. The one with the most arms comes first: it may have copied, and
// one agent is audited sooner than all.
export function prepare(agents) {
  const names = [...agents].sort((one, other) => other.arms.length - one.arms.length).map((agent) => agent.agent);
  const select = at("whose"), before = select.value;
  if (select.options.length !== names.length + 1) {
    select.replaceChildren(...names.map((name) => new Option(name, name)), new Option("each agent's (slower)", ""));
    if (names.includes(before)) select.value = before;
  }
  if (!prepared && names.length) {
    prepared = true;
    at("agents").value = Math.min(20, names.length);
    readout();
  }
}

function question() {
  if (kind() === "fitted") return { agent: at("whose").value || null, max_copies: value("most"), copy_odds: odds() };
  const belief = Object.fromEntries(["low", "high", "chance", "originals", "agents"].map((id) => [id, value(id)]));
  return { belief, max_copies: value("most") };
}

const made = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name ?? "" });
const shown = (number) => number !== 0 && Math.abs(number) < 1e-4 ? number.toExponential(0) : Number(number.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
const signed = (number) => (number > 0 ? "+" : number < 0 ? "−" : "") + shown(Math.abs(number));

function table(columns, rows) {
  const whole = document.createElement("table"), head = whole.createTHead().insertRow(), body = whole.createTBody();
  columns.forEach((text) => head.append(made("th", text)));
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach((text, number) => {
      const cell = made(number ? "td" : "th", text);
      if (number) cell.dataset.column = columns[number];
      row.append(cell);
    });
  }
  return whole;
}

// The best deviation of the worst agent for each number of additional entries.
function curve(reply) {
  const best = new Map();
  for (const one of reply.deviations.filter((each) => each.agent === reply.worst.agent)) {
    const extra = one.copies.reduce((sum, number) => sum + number, 0) - one.copies.length;
    if (extra > 0 && (!best.has(extra) || best.get(extra).gain < one.gain)) best.set(extra, one);
  }
  const rows = [...best].sort((one, other) => one[0] - other[0]), shown = rows.slice(0, 12);
  const top = rows.find(([, one]) => String(one.copies) === String(reply.worst.copies));
  return top && !shown.includes(top) ? [...shown, top] : shown;
}

// The best deviation of each agent that was looked at: the reply begins with them.
function bestOfEach(reply) {
  const best = new Map();
  for (const one of reply.deviations) if (!best.has(one.agent)) best.set(one.agent, one);
  const order = (one) => one.relative ?? Number.MAX_VALUE;
  return [...best.values()].sort((one, other) => order(other) - order(one));
}

function draw(reply) {
  const place = at("answer"), worst = reply.worst, figure = document.createElement("figure");
  const best = `${worst.agent} with copies (${worst.copies.join(", ")}): ${signed(worst.gain)} ± ${shown(worst.error)}`;
  const part = worst.relative === null ? "" : `, ${signed(100 * worst.relative)} % of the honest ${shown(worst.honest)}`;
  place.replaceChildren(made("h3", VERDICT[reply.verdict] ?? reply.verdict, reply.verdict), made("p", `${reply.verdict === "clone-proof" ? "The best of all deviations, " : "The best deviation found, "}${best}${part}.`), figure);
  const honest = worst.honest > 0;
  const rows = curve(reply).map(([extra, one]) => ({
    name: `${extra} more (${one.copies.join(",")})`,
    value: one.gain, low: one.gain - one.error, high: one.gain + one.error,
    colour: one.gain - one.error > 0 ? ORANGE : one.gain + one.error < 0 ? BLUE : GREY,
    text: honest ? `${signed((100 * one.gain) / one.honest)} %` : signed(one.gain),
  }));
  if (rows.length) bars(figure, rows, `Gain of ${worst.agent} over honest registration, for the best way to register so many entries more (in brackets: how often each item), over ${shown(reply.horizon)} rounds. Orange: it pays. Blue: it costs. Grey: neither is sure.`, honest ? "gain, % of the honest payoff" : "gain, in shares of rewards");
  const each = bestOfEach(reply);
  if (each.length > 1) place.append(table(["agent", "its best copies", "gain", "of the honest payoff"], each.slice(0, 20).map((one) => [one.agent, `(${one.copies.join(", ")})`, `${signed(one.gain)} ± ${shown(one.error)}`, one.relative === null ? "from nothing" : `${signed(100 * one.relative)} %`])));
  if (reply.priors.length && kind() === "fitted") {
    const atoms = (prior) => prior.atoms.map(([mean, weight]) => `${mean.toFixed(2)} (${Math.round(100 * weight)} %)`).join("  ");
    place.append(table(["agent", "items", "fitted prior (chance)"], reply.priors.slice(0, 20).map((prior) => [prior.agent, String(prior.originals), atoms(prior)])));
  }
  if (reply.items.length) {
    place.append(table(["agent", "rather one item than not", "all of them, with probability"], reply.items.slice(0, 8).map((item) => [item.agent, item.arms.slice(0, 12).join(", ") + (item.arms.length > 12 ? " .." : ""), item.probability.toFixed(3)])));
  }
  if (reply.pairs.length) {
    place.append(table(["agent", "two of its arms", "Bayes factor", "copies, with probability"], reply.pairs.slice(0, 8).map((pair) => [pair.agent, pair.arms.join(" and "), shown(pair.bayes_factor), pair.probability.toFixed(3)])));
    place.append(made("p", "Equal means alone do not prove a copy: where a mean is common, honest arms share it.", "hint"));
  }
  place.append(made("p", `Scope: ${reply.scope}`, "hint"));
  for (const note of reply.notes) place.append(made("p", note, "hint"));
}

at("question").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("ask").disabled = true;
  at("answer").replaceChildren(made("p", "Auditing…", "hint"));
  try {
    draw(await ask(here("/what-if"), question()));
  } catch (problem) {
    at("answer").replaceChildren(made("p", problem.message, "alarm"));
  } finally {
    at("ask").disabled = false;
  }
});
at("question").addEventListener("input", () => { readout(); toggle(); });
readout();
toggle();
