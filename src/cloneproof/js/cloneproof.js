// Sessions with the decisions and files of Python's cp.session. Names and reasons are those of cloneproof.mechanisms.

export class CloneproofError extends Error {}
export class SegmentEndedError extends CloneproofError {}

function refuse(expected, got, advice = "give one") {
  throw new CloneproofError(`expected ${expected}, got ${JSON.stringify(got, written)}; ${advice}`);
}

const number = (fine, value, what, most) => fine(value) && value > 0 && value <= most ? value : refuse(`${what} above 0, at most ${most}`, value);
const whole = (value, what, most = 1e15) => number(Number.isInteger, value, `${what} as a whole number`, most);
const positive = (value, what, most = 1e9) => number(Number.isFinite, value, what, most);
const oneOf = (value, list, what) => list.includes(value) ? value : refuse(`${what}, one of ${list.join(", ")}`, value);
const known = (name, table, what) => table[oneOf(name, Object.keys(table), what)];

// ---- Random numbers are hashes (splitmix64). A stream is two halves of 32 bits; `hash` leaves its word in two more.
let high = 0, low = 0;

function multiply(a2, a, b2, b) {
  const a0 = a & 0xffff, a1 = a >>> 16, b0 = b & 0xffff, b1 = b >>> 16, middle = a1 * b0 + (a0 * b0 >>> 16), carry = a0 * b1 + (middle & 0xffff);
  high = a1 * b1 + (middle >>> 16) + (carry >>> 16) + Math.imul(a2, b) + Math.imul(a, b2) >>> 0;
  low = Math.imul(a, b) >>> 0;
}

function fold(bits) {  // x ^= x >> bits
  low = (low ^ (low >>> bits | high << 32 - bits)) >>> 0;
  high = (high ^ high >>> bits) >>> 0;
}

function hash(stream, index, above = Math.floor((index + 1) / 2 ** 32)) {
  multiply(0x9e3779b9, 0x7f4a7c15, above, index + 1 >>> 0);
  const total = low + stream[1];
  high = high + stream[0] + (total > 0xffffffff) >>> 0; low = total >>> 0;
  fold(30); multiply(high, low, 0xbf58476d, 0x1ce4e5b9);
  fold(27); multiply(high, low, 0x94d049bb, 0x133111eb);
  fold(31);
}

const ROOT = [0, 0], substream = (stream, ...indices) => indices.reduce((each, index) => (hash(each, index), [high, low]), stream);
const uniform = (stream, index) => (hash(stream, index), (high * 2 ** 20 + (low >>> 12) + 0.5) * 2 ** -52);
const byWord = (a, b) => a[0] - b[0] || a[1] - b[1], words = (stream, keys) => keys.map(key => substream(stream, key)), drawn = (list, number) => list[Math.floor(number * list.length)];
const range = size => [...Array(size).keys()], zeros = (size, zero = 0) => Array(size).fill(zero);
const orderBy = words => range(words.length).sort((a, b) => byWord(words[a], words[b]));

function seedStream(seed) {
  if (!/^\d{1,19}$/.test(seed)) refuse("a whole seed from 0 to 2^63", seed);
  const next = BigInt(seed) + 1n;
  hash(ROOT, Number(next & 0xffffffffn) - 1, Number(next >> 32n));
  return [high, low];
}

// ---- Arithmetic with Python's bits. Rewards are summed in ticks of 2^-60.
const ONE = 1n << 60n, BITS = 128n, LN_2 = 0xb17217f7d1cf79abc9e3b39803f2f6afn, LOGARITHMS = [];
const even = x => Math.round(x) - x === 0.5 ? 2 * Math.round(x / 2) : Math.round(x);  // as Python rounds
const ticks = value => BigInt(even(value * 2 ** 60)), units = total => Number(total) * 2 ** -60;
const written = (key, value) => typeof value !== "bigint" ? value : value < 1n << 53n ? Number(value) : `${value}`;  // in a file

function mean(total, count) {  // of ticks, rounded once
  const scaled = total << BITS, by = BigInt(count);
  return BigInt.asUintN(60, total) ? Number(scaled / by << 1n | BigInt(scaled % by > 0n)) * 2 ** -189 : units(total) / count;
}

function bigLog(over, under) {  // the logarithm of over / under in fixed point
  const power = BigInt(Math.round(Math.log2(Number(over) / Number(under))));
  if (power > 0) under <<= power; else over <<= -power;
  const z = (over - under << BITS) / (over + under), square = z * z >> BITS;
  let total = 0n;
  for (let term = z, odd = 1n; term && term !== -1n; term = term * square >> BITS, odd += 2n) total += term / odd;
  return 2n * total + power * LN_2;
}

const ln = t => LOGARITHMS[t] ??= Number(bigLog(BigInt(t), 1n)) * 2 ** -128;  // the double nearest to ln t
const INVERSES = Array.from({ length: 11 }, (_, k) => 1 / (23 - 2 * k));

function series(x) {  // ln(1 + x) for x from -0.3 to 0.42
  const z = x / (2 + x), square = z * z;
  let total = 1 / 25;
  for (let k = 0; k < 11; k++) total = total * square + INVERSES[k];
  return 2 * (z + z * square * total);
}

function log(x) {
  const power = Math.floor(Math.log2(x)) + 1, mantissa = x / 2 ** power, small = mantissa < Math.SQRT1_2;
  return series((small ? 2 * mantissa : mantissa) - 1) + (power - small) * Math.LN2;
}

const logRatio = x => -0.25 <= x && x <= 0.4 ? series(x) : log(1 + x);

function klUpperBound(mean, pulls, width) {  // the largest q with pulls * kl(mean, q) <= width
  const room = 1 - mean, target = width / pulls;
  if (room <= 0 || target <= 0) return room <= 0 ? 1 : mean;
  let least = 0, most = room, x = Math.sqrt(0.5 * target);
  if (x >= room) x = 0.5 * room;
  for (let turn = 80; turn--;) {
    const excess = -room * logRatio(-x / room) - (mean && mean * logRatio(x / mean)) - target, slope = mean ? x / (mean + x) : 1;
    if (excess > 0) most = x; else least = x;
    let next = x - excess * (room - x) / slope;
    if (!(least < next && next < most)) next = 0.5 * (least + most);
    if (next === x || !(least < next && next < most)) break;
    x = next;
  }
  return mean + x;
}

const TAIL = 3.6541528853610088;  // of the 256 layers of the ziggurat
const [ENDS, HEIGHTS] = (() => {
  const root = square => { let x = 1n << 132n; for (let y = x - 1n; y < x; y = x + square / x >> 1n) x = y; return x; };
  const area = 0x143016a5a43731fd1ae53626832f3ebn << BITS, heights = [0n, 0x529816dae7dc3478379be3861eddb8n];
  const ends = [area / heights[1], 0x3a776904135a65e4491ffaef5b6ec7636n];
  while (ends.length < 256) {
    heights.push(heights.at(-1) + area / ends.at(-1));
    ends.push(root(-2n * bigLog(heights.at(-1), 1n << BITS) << BITS));
  }
  return [[...ends, 0n], [...heights, 1n << BITS]].map(list => list.map(each => Number(each) * 2 ** -128).reverse());
})();

function normalTail(stream, index = 0) {
  const x = -log(uniform(stream, index)) / TAIL;
  return -2 * log(uniform(stream, index + 1)) > x * x ? TAIL + x : normalTail(stream, index + 2);
}

function gammaVariate(shape, stream, first) {
  const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
  for (let index = first; ; index += 3) {
    const t = 2 * uniform(stream, index) - 1, layer = (low & 255) + 1;
    let x = t * ENDS[layer];
    if (Math.abs(t) >= ENDS[layer - 1] / ENDS[layer]) {
      if (layer === 256) x = Math.sign(t) * normalTail(substream(stream, index + 2));
      else if (log(HEIGHTS[layer] + uniform(stream, index + 2) * (HEIGHTS[layer - 1] - HEIGHTS[layer])) >= -0.5 * x * x) continue;
    }
    const root = 1 + c * x, v = root * root * root, u = uniform(stream, index + 1), square = x * x;
    if (root > 0 && (u < 1 - 0.0331 * (square * square) || log(u) < 0.5 * square + d * (1 - v + log(v)))) return d * v;
  }
}

function betaVariate(a, b, draw) {
  const bits = Math.floor(draw * 2 ** 52), stream = [Math.floor(bits / 2 ** 32), bits >>> 0], one = gammaVariate(a, stream, 0);
  return one / (one + gammaVariate(b, stream, 3000));
}

// ---- Rules: priorities of candidates, and ranks of slots, which are draws from agents' arms.
const PRIORITIES = {
  ucb: ({ constant }, clock, pulls, mean) => pulls ? mean + Math.sqrt(constant * ln(clock) / pulls) : Infinity,
  "kl-ucb": ({ constant }, clock, pulls, mean) => pulls ? klUpperBound(mean, pulls, constant * ln(clock)) : Infinity,
  thompson({ alpha, beta }, clock, pulls, mean, draw) {
    const clicks = Math.floor(mean * pulls + 0.5);
    return betaVariate(alpha + clicks, beta + pulls - clicks, draw);
  },
};
const countsCoins = ({ rule, coins = true }) => coins && rule !== "ucb";

function tests({ rounds, threshold }) {
  const passes = threshold === undefined ? Infinity : 0, origin = ticks(threshold ?? 0);
  const after = (pulls, total, rank, more = units(total - origin)) => [more >= passes ? rank : -more, 0];
  return { start: -Infinity, purse: rounds, after, commits: true };
}

function fallingIndex({ constant }) {  // minus the lowest index so far; updates become rarer
  const after = (pulls, total, rank) => [Math.max(rank, -klUpperBound(units(total) / pulls, pulls, constant)), Math.max(1, pulls >> 4)];
  return { start: -Infinity, purse: 1, after };
}

function failures({ bars, stake }) {  // a view costs a point, a click earns 1 / bar; none left: one more failure
  const attempts = [bars].flat().map((bar, k) => {
    const points = Number((1 / bar).toFixed(9));
    return { purse: Math.max(1, even((stake[k] ?? stake[0] ?? stake) * points)), whole: Math.floor(points), part: points % 1 };
  }), points = rank => attempts[rank] ?? attempts.at(-1);
  return { start: 0, purse: points(0).purse, after: (pulls, total, rank) => [rank + 1, points(rank + 1).purse], points };
}

const RANKS = { "first-pass": tests, "best-of-draws": tests, "falling-kl-ucb": fallingIndex, bars: failures };

// ---- Levels: candidates, and which is next. `data` is what a file keeps.
const counts = size => ({ rounds: 0, missing: 0, choice: null, total: zeros(size, 0n), decided: zeros(size), arrived: zeros(size) });

function count(data, k, worth) { data.arrived[k]++; data.missing--; data.total[k] += worth; }

function priorityLevel(rule, stream, keys, places) {
  const data = { ...counts(keys.length), judged: zeros(keys.length) }, views = keys.map(() => zeros(places)), means = [];
  const [first, ties, draw] = [0, 1, 3].map(purpose => substream(stream, purpose)), lots = words(ties, keys), draws = words(draw, keys);
  const turns = orderBy(words(first, keys).map(own => substream(own, 0))), tries = rule.rule !== "thompson", late = k => data.judged[k] - data.arrived[k];
  const priorities = (clock, index) => {
    const priority = PRIORITIES[rule.rule], time = clock - (rule.clock === "completed");
    return data.arrived.map((pulls, k) => priority(rule, time, pulls, means[k], tries ? 0 : uniform(draws[k], index)));
  };
  const average = k => { means[k] = places ? units(data.total[k]) / (data.arrived[k] || 1) : mean(data.total[k], data.arrived[k] || 1); };
  const level = {
    data, views,
    pick(clock) {  // ties to the fewest rewards outstanding, then by lot
      if (level.untried.length) return level.untried[0];
      const values = priorities(clock, data.rounds), highest = values.reduce((a, b) => Math.max(a, b)), best = range(values.length).filter(k => values[k] === highest);
      if (best.length === 1) return best[0];
      const fewest = Math.min(...best.map(late));
      return drawn(best.filter(k => late(k) === fewest).sort((a, b) => keys[a] - keys[b]), uniform(ties, data.rounds));
    },
    ranking(page, clock) {
      const values = priorities(clock, page), lot = lots.map(own => substream(own, page));
      return [...values.keys()].sort((a, b) => (values[a] < values[b]) - (values[a] > values[b]) || late(a) - late(b) || byWord(lot[a], lot[b]));
    },
    take(k) {
      data.rounds++; data.missing++; data.decided[k]++; data.judged[k]++;
      if (level.untried[0] === k) level.untried.shift();
    },
    add(k, worth, place) {
      count(data, k, worth(rule));
      if (place) views[k][place - 1]++;
      average(k);
    },
    restore(saved, seen = views) {
      Object.assign(data, saved, { total: saved.total.map(BigInt) });
      seen.forEach((own, k) => { views[k] = own; average(k); });
      level.untried = turns.filter(k => tries && !data.decided[k]);
    },
  };
  level.restore(data);
  return level;
}

function rankLevel(rule, order, dice) {  // the lowest rank, ties by `order`; ranks never fall
  const { start, purse: first, after, commits, points } = RANKS[rule.rule](rule), { length } = order;
  const data = { ...counts(length), rank: zeros(length, start), purse: zeros(length, first) };
  return {
    data,
    pick() {  // null: wait for rewards
      const { rank, purse, decided, arrived, choice } = data;
      let best = choice;
      for (let k = 0; k < length && choice === null; k++) {
        if (commits && 0 < purse[k] && purse[k] <= decided[k] - arrived[k]) continue;  // its test only waits
        if (best === null || rank[k] < rank[best] || rank[k] === rank[best] && order[k] < order[best]) best = k;
      }
      if (commits && choice === null && data.missing && (best === null || rank[best] > start)) return null;
      if (commits && !purse[best]) data.choice = best;
      return best;
    },
    take(k) { data.rounds++; data.decided[k]++; data.missing += data.choice === null; },
    add(k, worth) {
      const click = worth && points?.(data.rank[k]);
      count(data, k, worth);
      data.purse[k] += (click ? click.whole + (uniform(dice[k], data.arrived[k] - 1) < click.part) : 0) - 1;
      if (!data.purse[k]) [data.rank[k], data.purse[k]] = after(data.arrived[k], data.total[k], data.rank[k]);
    },
    restore(saved) { Object.assign(data, saved, { total: saved.total.map(BigInt), rank: saved.rank.map(rank => rank ?? -Infinity) }); },
  };
}

// ---- States of a mechanism. An allocation is what is kept of a decision.
const allocation = (agent, arm, phase, agentCounts, armCounts, version = 0, slot = -1, awaited = false, segment = null, place = 0) =>
  ({ agent, arm, phase, agentCounts, armCounts, version, slot, awaited, segment, place });

function armsState({ agent: above, arm: rule }, { agent_keys, arm_keys }, stream, slots, places) {  // all arms; or agents, then their arms
  const level = (own, key, keys) => priorityLevel(own, substream(stream, 0, 0, key), keys, places);
  const arms = arm_keys.flatMap((keys, agent) => keys.map((key, number) => [agent, number, agent_keys[agent] * 2 ** 32 + key]));
  const firsts = arm_keys.map((_, agent) => arms.findIndex(own => own[0] === agent));
  const outer = level(above ?? rule, 0, above ? agent_keys : arms.map(own => own[2])), inner = above ? arm_keys.map((keys, agent) => level(rule, agent_keys[agent] + 1, keys)) : [], levels = [outer, ...inner];
  const within = (agent, arm) => above ? [[outer, agent], [inner[agent], arm]] : [[outer, firsts[agent] + arm]];
  const show = (k, choose, place) => {
    const [agent, arm] = above ? [k, choose(inner[k])] : arms[k];
    within(agent, arm).forEach(([own, one]) => own.take(one));
    return allocation(agent, arm, "play", Boolean(above), true, 0, -1, false, null, place);
  };
  return {
    next: round => show(outer.pick(round), own => own.pick(own.data.rounds + 1), 0),
    nextPage: page => outer.ranking(page, page).slice(0, places).map((k, place) => show(k, own => own.ranking(page, own.data.rounds + 1)[0], place + 1)),
    add({ agent, arm, place }, worth) { within(agent, arm).forEach(([own, k]) => own.add(k, worth, place)); },
    toJSON() {
      const [level, ...others] = levels.map(({ data }) => data), views = levels.map(own => own.views), rest = { version: 0, neutral: [0, 0] };
      return above ? { ...rest, agents: level, inner: others, outstanding: zeros(inner.length), views } : { ...rest, level, views: views[0] };
    },
    restore({ level: only, agents = only, inner: others = [], views }) {
      levels.forEach((own, k) => own.restore([agents, ...others][k], above ? views?.[k] : views));
    },
  };
}

const drawsOf = (slots, keys, pools) => (agent, draw) => drawn(pools[agent], uniform(substream(slots, 0, 0, keys[agent] + 1, 5), draw));

function slotsState({ arm: rule }, { agent_keys: keys, pools }, stream, slots) {  // by rank; tests in a timetable, first draws before second ones
  const lots = substream(stream, 0, 0, 0);
  const order = orderBy(words(substream(lots, 0), keys)), draws = range(rule.draws), scans = rule.rounds > 0, armOf = drawsOf(slots, keys, pools);
  const held = scans ? draws.flatMap(draw => order.map(agent => [agent, draw])) : range(keys.length).flatMap(agent => draws.map(draw => [agent, draw]));
  const named = held.map(([agent, draw]) => keys[agent] * 2 ** 32 + draw), arms = held.map(own => armOf(...own)), place = range(held.length);
  if (!scans) orderBy(words(substream(lots, 1), named)).forEach((k, turn) => { place[k] = turn; });
  const level = rankLevel(rule, place, words(substream(lots, 2), named)), turns = words(substream(stream, 2), keys), queue = orderBy(turns);
  let neutral = [0, 0];  // rounds that wait for rewards: agents in turn, and their draws
  return {
    next() {
      const k = level.pick(), counted = level.data.choice === null;
      if (k === null) {
        const agent = queue[neutral[0]++ % queue.length];
        return allocation(agent, drawn(pools[agent], uniform(turns[agent], ++neutral[1])), "waiting", false, false);
      }
      level.take(k);
      return allocation(held[k][0], arms[k], !scans ? "play" : counted ? "trial" : "award", false, counted, 0, k);
    },
    pull: ({ slot }) => [1 + held[slot][1], level.data.decided[slot] - 1],
    add({ slot }, worth) { level.add(slot, worth(rule)); },
    toJSON: () => ({ version: 0, neutral, level: level.data }),
    restore(saved) { ({ neutral } = saved); level.restore(saved.level); },
  };
}

function laboratory({ arm: rule }, { agent_keys: keys, pools }, stream, slots, places) {  // pages: a draw a test in all places by turns, then the best counts
  const { length } = keys, order = orderBy(words(substream(stream, 0, 0, 0, 0), keys)), armOf = drawsOf(slots, keys, pools);
  const { draws, rounds, rank_rounds = 0 } = rule, end = (rounds * draws + rank_rounds) * length;
  let data = { draw: zeros(length), known: zeros(length, false), views: zeros(length), block: 0, missing: 0, waited: 0,
    clicks: zeros(length), score: zeros(length, 0n), levels: keys.map(() => zeros(draws, 0n)) }, ranking = [];
  const rank = ({ score }) => { ranking = [...order].sort((a, b) => (score[a] < score[b]) - (score[a] > score[b])); };
  return {
    nextPage(page) {
      const { block, levels } = data, clock = page - 1 - data.waited, last = block + 1 === draws, closes = block < draws && clock >= (block + 1) * rounds * length;
      const waits = closes && last && data.missing > 0, counted = !waits && clock < end, first = length - (waits ? page - 1 : clock) % length;
      if (closes && !waits) {
        data.block++;
        if (last) data.score = levels.map(own => own.reduce((a, b) => a < b ? b : a));
        data.draw = levels.map((own, agent) => last ? own.indexOf(data.score[agent]) : data.block);
        data.known.fill(last);
      }
      if (!waits && !counted && !ranking.length) rank(data);
      data.waited += waits;
      const due = waits || counted ? [...order.slice(first), ...order.slice(0, first)] : ranking, version = Number(data.block === draws);
      return due.slice(0, places).map(agent => {
        const draw = data.draw[agent];
        data.known[agent] = true; data.views[agent] += counted; data.missing += counted && !version;
        return allocation(agent, armOf(agent, draw), waits ? "waiting" : counted ? "trial" : "award", false, counted, version, draw);
      });
    },
    pull: ({ agent, slot }) => [1 + slot, data.views[agent] - 1],
    add({ agent, slot, version }, worth) {
      if (version) data.score[agent] += worth(rule); else { data.levels[agent][slot] += worth(rule); data.missing--; }
      if (ranking.length) rank(data);
    },
    toJSON: () => ({ ...data, ranked: ranking.length > 0 }),
    restore({ ranked, ...saved }) {
      data = { ...saved, score: saved.score.map(BigInt), levels: saved.levels.map(own => own.map(BigInt)) };
      if (ranked) rank(data);
    },
  };
}

// ---- Mechanisms: options and defaults (null: must be given), and rules.
const arms = rule => options => ({ agent: null, arm: { rule, ...options } }), positives = (value, what) => [value].flat().forEach(one => positive(one, what));
const CATALOGUE = {
  ucb1: [{ constant: 2, clock: "current" }, arms("ucb"), { one_place_each: false }],
  "kl-ucb": [{ constant: 1, clock: "current" }, arms("kl-ucb"), { one_place_each: false }],
  thompson: [{ alpha: 1, beta: 1 }, arms("thompson"), { one_place_each: false }],
  "h-thompson": [{ alpha: 1, beta: 1 }, prior => ({ agent: { rule: "thompson", ...prior }, arm: { rule: "thompson", ...prior } })],
  reservoir: [{ rounds: null, draws: null, threshold: undefined, rank_rounds: 0 }, ({ threshold, rank_rounds, ...test }) => threshold === undefined
    ? arms("best-of-draws")({ ...test, ...rank_rounds && { rank_rounds } }) : arms("first-pass")({ ...test, threshold, fallback: "best" }),
  { choose: "first-pass", fallback: "best", coins: true, scores: "clicks" }],
  "reservoir-bars": [{ bars: null, stake: 1, draws: 16 }, arms("bars")],
  "reservoir-index": [{ draws: null, constant: null }, arms("falling-kl-ucb")],
};
const CHECKS = { rounds: whole, draws: whole, threshold: whole, rank_rounds: (value, what) => value === 0 || whole(value, what), bars: positives, stake: positives,
  clock: (value, what) => oneOf(value, ["current", "completed"], what) };

export function mechanism(name, given = {}) {
  const [defaults, rules, fixed] = known(name, CATALOGUE, "a mechanism"), options = { ...defaults, ...given };
  for (const [option, value] of Object.entries(options)) {
    oneOf(option, Object.keys(defaults), `an option of ${name}`);
    if (value === undefined) delete options[option]; else (CHECKS[option] ?? positive)(value, option);
  }
  if (options.threshold > options.rounds) refuse("a threshold of at most the rounds", options.threshold);
  if ([options.bars].flat().some((bar, k, all) => bar > (all[k - 1] ?? 1))) refuse("bars of at most 1 that do not rise", options.bars);
  return { name, parameters: { ...options, ...fixed }, ...rules(options) };
}

function checked({ name, agent, arm, restart, score, sample, fallback, one_place_each }, weights, places) {
  const onSlots = arm.rule in RANKS, there = onSlots ? !agent && arm.fallback !== "draw" : arm.rule in PRIORITIES && (agent ?? arm).rule in PRIORITIES;
  if (!there || restart || score || sample || fallback || one_place_each) refuse(`a mechanism that JavaScript has (${Object.keys(CATALOGUE).join(", ")})`, name);
  if (weights && !onSlots) refuse("weights for a mechanism on draws", name, "leave them out");
  if (places && onSlots && arm.rule !== "best-of-draws") refuse("a mechanism that fills pages, as reservoir without threshold", name);
}

// ---- Sessions.
const entries = given => given instanceof Map ? [...given] : Object.entries(given ?? {}), divisor = (a, b) => b ? divisor(b, a % b) : a;

function registrationOf(registered, weights) {
  const given = entries(registered), names = given.map(([name]) => name), arms = given.map(([name, own]) => whole(own, `the arms of ${name}`, 1e7));
  if (!given.length) refuse("registered as agent to number of arms", registered, "give e.g. { ana: 2 }");
  for (const [name, own] of entries(weights)) {
    if (own.length !== arms[names.indexOf(name)] || !own.some(Boolean)) refuse(`a weight for each arm of ${name}, and not all 0`, own);
    own.forEach(one => one === 0 || whole(one, `each weight of ${name}`, 1000));
  }
  return { names, arms, agent_keys: range(names.length), arm_keys: arms.map(range), ...weights && { weights: Object.fromEntries(entries(weights)) } };
}

function poolOf(keys, weights = [1]) {  // an agent's arms, each as often as its weight
  const common = weights.reduce(divisor), equal = weights.every(one => one === weights[0]);
  return range(keys.length).sort((a, b) => keys[a] - keys[b]).flatMap(arm => zeros(equal ? 1 : weights[arm] / common, arm));
}

const lastRound = (mean, draw) => mean === 1 ? 1 : 1 + Math.floor(log(draw) / logRatio(-1 / mean));

function segmentOf(name, number, mechanism, registration, stream, mean, places) {  // null: all of the session
  const own = name === null ? stream : substream(stream, 4, number), { arm } = mechanism, coins = substream(own, 1), onSlots = arm.rule in RANKS;
  const kind = onSlots ? places ? laboratory : slotsState : armsState, byPull = onSlots && countsCoins(arm), pulls = new Map();
  const segment = {
    name, number, round: 0, last: lastRound(mean, uniform(substream(own, 2), 0)),
    open() { segment.state ??= kind(mechanism, registration, substream(own, 0), substream(stream, 0), places); },
    expect(id, shown) { if (byPull && shown.armCounts) pulls.set(id, [id, ...segment.state.pull(shown)]); },
    add(id, shown, value) {
      const [, draw, pull] = pulls.get(id) ?? [], named = byPull ? substream(coins, shown.version, registration.agent_keys[shown.agent], draw) : coins;
      const coin = value === 1 || value && uniform(named, byPull ? pull : id) < value ? ONE : 0n;
      pulls.delete(id);
      segment.state.add(shown, rule => countsCoins(rule) ? coin : ticks(value));
    },
    toJSON: () => ({ round: segment.round, joined: [], machine: segment.state, coins: [...pulls.values()] }),
    restore({ round, machine, coins: kept = [] }) {
      segment.open();
      segment.round = round;
      segment.state.restore(machine);
      for (const each of kept) pulls.set(each[0], each);
    },
  };
  return segment;
}

function checksum(text) {  // Adler-32
  let a = 1, b = 0;
  for (const byte of new TextEncoder().encode(text)) b = (b + (a = (a + byte) % 65521)) % 65521;
  return b * 65536 + a;
}

const TERMS = { seed: 0, share: 1, rewards: null, window: null, ends: "at-horizon", positions: null, history: true, segments: null };

export class Session {
  constructor(mechanism, registration, horizon, given = {}) {
    for (const term of Object.keys(given)) oneOf(term, Object.keys(TERMS), "a term of sessions in JavaScript");
    const terms = { ...TERMS, ...given, segments: entries(given.segments) }, { ends, positions, segments } = terms, stream = seedStream(terms.seed);
    const { names, arm_keys, weights, joined } = registration, parts = segments.length ? segments : [[null, 1]], random = ends === "at-random";
    if (Math.abs(parts.reduce((total, [, part]) => total + positive(part, "a fraction", 1), -1)) > 1e-9) refuse("fractions that add up to 1", segments);
    if (joined) refuse("a session without agents that joined", joined, "go on in Python");
    whole(horizon, "horizon"); positive(terms.share, "share", 1); oneOf(terms.rewards, [null, "bernoulli"], "rewards"); oneOf(ends, ["at-horizon", "at-random"], "ends");
    whole(terms.window ?? 1, "window"); whole(positions ?? 1, "positions", 1000);
    const declared = new Map(entries(weights)), pools = arm_keys.map((keys, agent) => poolOf(keys, declared.get(`${names[agent]}`)));
    this.segments = new Map(parts.map(([name, part], k) => {
      const own = mechanism.segments ? known(name, mechanism.segments, "a segment") : mechanism, mean = Math.max(1, even(part * horizon));
      checked(own, weights, positions);
      return [name, segmentOf(name, k, own, { ...registration, pools }, stream, mean, positions ?? 0)];
    }));
    this.last = random ? [...this.segments.values()].reduce((total, { last }) => total + last, 0) : horizon;
    Object.assign(this, { round: 0, pages: 0, pending: new Map(), sums: zeros(names.length, 0n), oldest: 1 });
    this.terms = { ...terms, mechanism, registration, horizon, seed: BigInt(terms.seed) };
    this.past = { agent_of: [], arm_of: [], value_of: [], segment_of: [] };
    this.segments.get(null)?.open();
  }
  next(name, paged) {
    const { window, positions, ends, history, registration: { names } } = this.terms, { pending, past } = this;
    const segment = this.segments.get(name) ?? refuse(`one of the segments ${[...this.segments.keys()].join(", ")}`, name);
    if (paged !== (positions !== null)) refuse("decideSlate() with positions, else decide()", "the other");
    if ((paged ? this.pages : this.round) >= this.last) refuse(`at most ${this.last} decisions`, "one more", "open a new session");
    if (ends === "at-random" && segment.round >= segment.last) throw new SegmentEndedError(`segment ${name} has ended`);
    if (window !== null) this.closeWindows(window * (positions ?? 1));
    segment.open();
    segment.round++; this.pages += paged;
    return (paged ? segment.state.nextPage(segment.round) : [segment.state.next(segment.round)]).map((own, k) => {
      const id = ++this.round, { agent, arm, phase, slot } = own;
      pending.set(id, Object.assign(own, { segment: name }));
      segment.expect(id, own);
      if (history) {
        past.agent_of.push(agent); past.arm_of.push(arm); past.value_of.push(null);
        if (name !== null) past.segment_of.push(segment.number);
      }
      return { id, agent: names[agent], arm, phase, slot, segment: name, place: paged ? k + 1 : 0 };
    });
  }
  decide(segment = null) { return this.next(segment, false)[0]; }
  decideSlate(segment = null) { return this.next(segment, true); }
  reward(id, value) {
    const { rewards } = this.terms;
    if (!(value >= 0 && value <= 1 && typeof value === "number") || rewards && value % 1) refuse(`a reward in ${rewards ? "{0, 1}" : "[0, 1]"}`, value);
    if (this.pending.has(id)) this.enter(id, value);
    else if (this.past.value_of[whole(id, "the id of a decision", this.round) - 1] !== value) refuse(`no other reward of decision ${id}`, value, "send one");
  }
  enter(id, value) {
    const own = this.pending.get(id);
    this.pending.delete(id);
    if (own.armCounts) this.segments.get(own.segment).add(id, own, value);
    this.sums[own.agent] += ticks(value);
    if (this.terms.history) this.past.value_of[id - 1] = value;
  }
  closeWindows(window) {  // what is missing then counts as 0
    for (; this.oldest <= this.round; this.oldest++) {
      if (this.pending.has(this.oldest)) { if (this.round < this.oldest + window) return; this.enter(this.oldest, 0); }
    }
  }
  get payoff() { return Object.fromEntries(this.terms.registration.names.map((name, k) => [name, this.terms.share * units(this.sums[k])])); }
  toJSON() {  // the session's file: JSON.stringify(session)
    const { terms, past, round, pages, sums } = this, begun = Object.fromEntries([...this.segments].filter(([, { state }]) => state));
    const pending = [...this.pending].map(([id, own]) => [...Object.values(own), [id]]), parts = terms.segments.length ? { begun } : begun.null.toJSON();
    const body = JSON.stringify({ ...terms, ...terms.positions && { pages }, sums, pending, ...past, ...parts, round }, written);
    return { format: "cloneproof session", version: 9, digest: checksum(body), body };
  }
  static fromJSON(file) {
    const { format, version, digest, body } = typeof file === "string" ? JSON.parse(file) : file;
    if (format !== "cloneproof session" || version !== 9) refuse("a session file of version 9", version);
    if (checksum(body) !== digest) refuse("a session file as it was saved", digest, "restore it");
    const { mechanism, registration, horizon, segments, machine, coins, joined, begun, pending, sums, round, pages = 0, agent_of, arm_of, value_of,
      segment_of = [], ...terms } = JSON.parse(body);
    const live = new Session(mechanism, registration, horizon, { ...terms, segments: new Map(segments) });
    Object.assign(live, { round, pages, sums: sums.map(BigInt), past: { agent_of, arm_of, value_of, segment_of } });
    for (const [name, data] of begun ? Object.entries(begun) : [[null, { machine, coins, round: pages || round }]]) live.segments.get(name).restore(data);
    for (const [...fields] of pending) fields.pop().reduce((id, step) => (live.pending.set(id + step, allocation(...fields)), id + step), 0);
    live.pending = new Map([...live.pending].sort(([a], [b]) => a - b));
    return live;
  }
}

export const session = (mechanism, registered, horizon, { weights, ...options } = {}) =>
  new Session(mechanism, registrationOf(registered, weights), horizon, options);
