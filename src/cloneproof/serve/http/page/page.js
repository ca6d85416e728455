// The live market: asks the service every two seconds while somebody looks, and draws what it says.

import { BLUE, GREY, bars, dots } from "/draw.js";
import { drawBalances, drawLedger, drawPlaces } from "/records.js";

const EVERY = 2000, TAIL = 500, MOST_ROWS = 40;
const at = (id) => document.getElementById(id);
export const count = new Intl.NumberFormat("en");
let key = null; // in this variable and nowhere else
let market = null, terms = null, stamp = 0, timer = null;

export class Refusal extends Error {}

export async function ask(path) {
  let response;
  const options = { headers: { Authorization: `Bearer ${key}` }, cache: "no-store", credentials: "omit" };
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The service cannot be reached; trying again.");
  }
  const reply = await response.json();
  if (response.ok) return reply;
  throw response.status < 500 ? new Refusal(reply.message) : new Error(reply.message);
}

export const here = (rest) => `/v1/markets/${encodeURIComponent(market)}${rest}`;
export const money = (micro) => new Intl.NumberFormat("en", { maximumFractionDigits: 2 }).format(micro / 1e6);

// A confidence sequence (Howard, Ramdas, McAuliffe and Sekhon 2021, eq. 1.2): it holds at all times at once, so also
// where the mechanism chose whom to serve by looking at the rewards.
export function halfWidth(rewards, spread, alpha = 0.05) {
  return 1.7 * spread * Math.sqrt((Math.log(Math.log(2 * rewards) < 1 ? 1 : Math.log(2 * rewards)) + 0.72 * Math.log(10.4 / alpha)) / rewards);
}

function interval(name, inner, rewards, total) {
  if (rewards === 0) return { name, inner, mean: null };
  const family = terms.rewards, sd = family?.family === "gaussian" ? family.sd ?? 0.1 : family === "gaussian" ? 0.1 : null;
  const mean = total / rewards, half = halfWidth(rewards, sd ?? 0.5);
  const [low, high] = sd === null ? [Math.max(0, mean - half), Math.min(1, mean + half)] : [mean - half, mean + half];
  return { name, inner, mean, low, high, tip: `${name}: ${mean.toFixed(3)}, from ${low.toFixed(3)} to ${high.toFixed(3)}, ${count.format(rewards)} rewards` };
}

function drawScores(agents) {
  const rows = [];
  for (const agent of agents) {
    const rewards = agent.arms.reduce((sum, arm) => sum + arm.rewards, 0);
    const total = agent.arms.reduce((sum, arm) => sum + (arm.mean ?? 0) * arm.rewards, 0);
    rows.push(interval(agent.agent, false, rewards, total));
    for (const arm of agent.arms) rows.push(interval(arm.arm, true, arm.rewards, (arm.mean ?? 0) * arm.rewards));
  }
  const left = rows.length - MOST_ROWS;
  const more = left > 0 ? ` ${left} further rows are not shown.` : "";
  dots(at("scores"), rows.slice(0, MOST_ROWS), `Mean reward of each agent and, below it, of its arms, with confidence sequences: each by itself holds, at all times at once, with a probability of at least 95 %. An agent's is about the mean of its arms as they were served${terms.positions === undefined ? "" : ", in places of different attention"}.${more}`, "mean reward of a round");
}

function drawTraffic(agents) {
  const made = agents.map((agent) => [agent, agent.arms.reduce((sum, arm) => sum + arm.decisions, 0)]);
  const total = made.reduce((sum, [, decisions]) => sum + decisions, 0);
  made.sort((one, other) => other[1] - one[1]);
  const rows = made.slice(0, 20).map(([agent, decisions]) => ({ name: agent.agent, value: total ? decisions / total : 0, text: `${total ? ((100 * decisions) / total).toFixed(1) : 0} %` }));
  const rest = made.length > 20 ? ` The ${made.length - 20} agents with the fewest are not shown.` : "";
  bars(at("traffic"), rows, `Part of this season's ${count.format(total)} decisions that served each agent.${rest}`);
}

function drawSegments(segments) {
  at("segments-part").hidden = segments.length === 0;
  if (segments.length === 0) return;
  const rows = segments.slice(0, 20).map((one) => ({ name: one.segment, value: one.decisions, text: `${count.format(one.decisions)}${one.ended ? ", ended" : ""}`, colour: one.ended ? GREY : BLUE }));
  const others = segments.slice(20), rest = others.length ? ` The ${count.format(others.length)} smallest segments are not shown; they have ${count.format(others.reduce((sum, one) => sum + one.decisions, 0))} decisions.` : "";
  bars(at("segments"), rows, `${terms.positions === undefined ? "Decisions" : "Pages"} of this season in each segment, the one with the largest share of the rounds first. Agents have one list for all segments; scores, champions and random ends are each segment's own.${rest}`);
}

const OF_PAGES = { trial: "a draw is tested in the last place", award: "places go to agents by rank" };
const PHASES = { trial: "agents are tried in turn", award: "the best agent is served", waiting: "rewards are awaited before a choice" };

function tell(view, progress) {
  at("name").textContent = progress.market;
  at("mechanism").replaceChildren(document.createTextNode("run by "), Object.assign(document.createElement("b"), { textContent: terms.mechanism }), document.createTextNode(`: ${view.mechanism}`));
  const state = { open: "is open for registration", running: "is running", settled: "is settled" }[progress.state];
  const pages = terms.positions !== undefined;
  at("sentence").textContent = `Season ${progress.season} ${state}: ${count.format(progress.agents.length)} agents, horizon ${count.format(progress.horizon)} ${pages ? "pages" : "rounds"}, agents get ${100 * terms.share} % of a reward.`;
  at("phase").textContent = progress.phase;
  at("phase-words").textContent = progress.state === "running" ? (pages ? OF_PAGES : PHASES)[progress.phase] ?? "" : "";
  const played = progress.state === "settled" && !pages ? progress.agents.reduce((sum, agent) => sum + agent.arms.reduce((own, arm) => own + arm.decisions, 0), 0) : progress.round;
  at("rounds-title").textContent = pages ? "Pages filled" : "Rounds decided";
  at("rounds").textContent = pages && progress.state === "settled" ? "all" : count.format(played);
  const part = progress.state === "settled" && pages ? "the season is over" : `${((100 * played) / progress.horizon).toFixed(1)} % of the horizon`;
  at("rounds-words").textContent = `${part}; rewards: ${count.format(progress.pending)} awaited, ${count.format(progress.defaulted)} never came in time, ${count.format(progress.late)} came late`;
  at("paid").textContent = money(progress.agents.reduce((sum, agent) => sum + agent.balance, 0));
  at("paid-words").textContent = `over all seasons; ${count.format(progress.entries)} ledger entries`;
  at("bar").value = pages && progress.state === "settled" ? 1 : played / progress.horizon;
  at("head").textContent = progress.head;
  at("fresh").textContent = `As of ${new Date().toLocaleTimeString("en-GB")}; asks again every ${EVERY / 1000} s while this page is in view.`;
}

async function refresh() {
  const [view, progress] = await Promise.all([ask(here("")), ask(here("/progress"))]);
  const page = await ask(here(`/ledger?after=${Math.max(0, progress.entries - TAIL)}&limit=${TAIL}`));
  terms = { share: 1, ...view.terms };
  at("shown").hidden = false;
  tell(view, progress);
  if (stamp !== progress.entries + at("scores").clientWidth * 1e9) {
    stamp = progress.entries + at("scores").clientWidth * 1e9;
    drawScores(progress.agents);
    drawTraffic(progress.agents);
    drawSegments(progress.segments);
    drawBalances(progress.agents);
    drawPlaces(progress.page);
    drawLedger(page.lines);
  }
}

function alarm(text) {
  at("alarm").textContent = text ?? "";
  at("alarm").hidden = !text;
}

async function look() {
  clearTimeout(timer);
  if (key === null) return;
  try {
    if (!document.hidden) await refresh();
    alarm(null);
  } catch (problem) {
    alarm(problem.message);
    if (problem instanceof Refusal) return stop();
  }
  timer = setTimeout(look, EVERY);
}

function stop() {
  key = null;
  at("entry").hidden = false;
  at("key").focus();
}

at("entry").addEventListener("submit", async (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  at("key").value = "";
  try {
    const { markets } = await ask("/v1/markets");
    alarm(null);
    at("entry").hidden = true;
    at("market").replaceChildren(...markets.map((name) => new Option(name, name)));
    at("choice").hidden = markets.length < 2;
    market = markets[0] ?? null;
    if (market === null) return alarm("There is no market yet; create one through the API."), stop();
    await look();
    if (!at("choice").hidden) at("market").focus();
  } catch (problem) {
    alarm(problem.message);
    stop();
  }
});
at("market").addEventListener("change", () => {
  market = at("market").value;
  stamp = 0;
  look();
});
document.addEventListener("visibilitychange", look);
addEventListener("resize", () => { stamp = 0; });
