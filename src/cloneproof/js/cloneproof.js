// Sessions with the decisions and files of Python's cp.session. Names and reasons are those of cloneproof.mechanisms.

export class CloneproofError extends Error {}
export class SegmentEndedError extends CloneproofError {}

function refuse(expected, got, advice = "give one") {
	throw new CloneproofError(`expected ${expected}, got ${JSON.stringify(got, written)}; ${advice}`);
}

const positive = (value, what, most = 1e9, fine = Number.isFinite) => fine(value) && value > 0 && value <= most ? value : refuse(`${what} above 0, at most ${most}`, value);
const whole = (value, what, most = 1e15) => positive(value, `${what} as a whole number`, most, Number.isInteger);
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
const byWord = (a, b) => a[0] - b[0] || a[1] - b[1], words = (stream, keys) => keys.map(key => substream(stream, key));
const range = size => [...Array(size).keys()], zeros = (size, zero = 0) => Array(size).fill(zero);
const orderBy = words => range(words.length).sort((a, b) => byWord(words[a], words[b])), drawn = (list, number) => list[Math.floor(number * list.length)];

function seedStream(seed) {
	if (!/^\d{1,19}$/.test(seed)) refuse("a whole seed from 0 to 2^63", seed);
	const next = BigInt(seed) + 1n;
	hash(ROOT, Number(next & 0xffffffffn) - 1, Number(next >> 32n));
	return [high, low];
}

// ---- Arithmetic with Python's bits. Rewards are summed in ticks of 2^-30.
const ONE = 1n << 30n, BITS = 128n, UNIT = 1n << BITS, LN_2 = 0xb17217f7d1cf79abc9e3b39803f2f6afn, LOGARITHMS = [];
const even = x => Math.round(x) - x === 0.5 ? 2 * Math.round(x / 2) : Math.round(x);  // as Python rounds
const ticks = value => BigInt(even(value * 2 ** 30)), units = total => Number(total) * 2 ** -30;
const written = (key, value) => typeof value !== "bigint" ? value : value < 1n << 53n ? Number(value) : `${value}`;  // in a file

const mean = (total, count) => Number((total << BITS) / BigInt(count)) * 2 ** -158;  // rounded once

function bigLog(x) {  // in fixed point
	const power = BigInt(Math.round(Math.log2(Number(x))) - 128), part = x >> power, z = (part - UNIT << BITS) / (part + UNIT), square = z * z >> BITS;
	let total = 0n;
	for (let term = z, odd = 1n; term && term !== -1n; term = term * square >> BITS, odd += 2n) total += term / odd;
	return 2n * total + power * LN_2;
}

const fromBig = x => Number(x) * 2 ** -128, ln = t => LOGARITHMS[t] ??= fromBig(bigLog(BigInt(t) << BITS));  // the nearest double

function series(x) {  // ln(1 + x) for x from -0.3 to 0.42
	const z = x / (2 + x), square = z * z;
	let total = 1 / 25;
	for (let odd = 23; odd > 1; odd -= 2) total = total * square + 1 / odd;
	return 2 * (z + z * square * total);
}

function log(x) {
	const power = Math.floor(Math.log2(x)) + 1, mantissa = x / 2 ** power, small = mantissa < Math.SQRT1_2;
	return series((small ? 2 * mantissa : mantissa) - 1) + (power - small) * Math.LN2;
}

const logRatio = x => -0.25 <= x && x <= 0.4 ? series(x) : log(1 + x);

function klUpperBound(mean, pulls, width) {  // the largest q with pulls * kl(mean, q) <= width
	const room = 1 - mean, target = width / pulls;
	if (room <= 0 || target <= 0) return Math.min(1, mean);
	let least = 0, most = room, x = Math.sqrt(0.5 * target);
	const inside = x => least < x && x < most;
	if (x >= room) x = 0.5 * room;
	for (let turn = 80; turn--;) {
		const excess = -room * logRatio(-x / room) - (mean && mean * logRatio(x / mean)) - target, slope = x / (mean + x);
		if (excess > 0) most = x; else least = x;
		let next = x - excess * (room - x) / slope;
		if (!inside(next)) next = 0.5 * (least + most);
		if (next === x || !inside(next)) break;
		x = next;
	}
	return mean + x;
}

const [ENDS, HEIGHTS] = (() => {  // of the 256 layers of the ziggurat, the tail last
	const root = square => { let x = 1n << 132n; for (let y = x - 1n; y < x; y = x + square / x >> 1n) x = y; return x; };
	const area = 0x143016a5a43731fd1ae53626832f3ebn << BITS, heights = [0n, 0x529816dae7dc3478379be3861eddb8n];
	const ends = [area / heights[1], 0x3a776904135a65e4491ffaef5b6ec7636n];
	while (ends.length < 256) {
		heights.push(heights.at(-1) + area / ends.at(-1));
		ends.push(root(-2n * bigLog(heights.at(-1)) << BITS));
	}
	return [[...ends, 0n], [...heights, UNIT]].map(list => list.map(fromBig).reverse());
})();

function normalTail(stream, index = 0) {
	const tail = ENDS[255], x = -log(uniform(stream, index)) / tail;
	return -2 * log(uniform(stream, index + 1)) > x * x ? tail + x : normalTail(stream, index + 2);
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
	"epsilon-greedy": ({ c }, clock, pulls, mean, draw, coin, candidates) => coin * clock < c * candidates ? draw : mean,
	thompson({ alpha, beta }, clock, pulls, mean, draw) {
		const clicks = Math.floor(mean * pulls + 0.5);
		return betaVariate(alpha + clicks, beta + Math.max(0, pulls - clicks), draw);
	},
};
const countsCoins = ({ rule, coins = true }) => coins && !["ucb", "epsilon-greedy"].includes(rule);

const tests = ({ threshold }) => ({
	start: -Infinity,
	after(pulls, total, rank) {
		const more = units(total - ticks(threshold ?? 0));
		return [threshold && more >= 0 ? rank : -more, 0];
	},
});
const RANKS = {
	"first-pass": tests, "best-of-draws": tests,
	"falling-kl-ucb": ({ constant }) => ({  // minus the lowest index so far; updates become rarer
		start: -Infinity, purse: 1,
		after: (pulls, total, rank) => [Math.max(rank, -klUpperBound(units(total) / pulls, pulls, constant)), Math.max(1, pulls >> 4)],
	}),
	bars({ bars, stake }) {  // a view costs a point, a click earns 1 / bar; none left: one more failure
		const at = (list, rank) => [list].flat()[rank] ?? [list].flat().at(-1), points = rank => Number((1 / at(bars, rank)).toFixed(9));
		const purse = rank => Math.max(1, even(at(stake, rank) * points(rank)));
		return { start: 0, purse: purse(0), after: (pulls, total, rank) => [rank + 1, purse(rank + 1)], points };
	},
};

// ---- States of a mechanism: what to show next, and what its rewards do. `data` is what a file keeps.
const counts = size => ({ rounds: 0, missing: 0, choice: null, total: zeros(size, 0n), decided: zeros(size), arrived: zeros(size) });

function count(data, k, worth) { data.arrived[k]++; data.missing--; data.total[k] += worth; }

function refill(data, saved) {
	for (const [key, value] of Object.entries(saved)) {
		if (data[key] && typeof data[key] === "object") refill(data[key], value);
		else data[key] = typeof data[key] === "bigint" ? BigInt(value) : value ?? data[key];  // JSON has no infinity
	}
}

function priorityLevel(rule, stream, keys, attention) {  // which candidates are best; a view on a page counts as its place's attention
	const data = counts(keys.length), views = keys.map(() => zeros(attention.length)), pulls = [], means = [], measured = [], paged = attention.length > 0;
	const [first, ties, coins, draws] = words(stream, range(4)), lots = words(ties, keys), dice = words(draws, keys), all = range(keys.length);
	const turns = orderBy(words(first, keys).map(own => substream(own, 0))), tries = rule.rule.endsWith("ucb"), late = k => data.decided[k] - data.arrived[k];
	data.judged = data.decided;
	const measure = k => {
		const seen = views[k].reduce((total, count, place) => total + attention[place] * count, 0), total = data.total[k], arrived = measured[k] = data.arrived[k];
		[pulls[k], means[k]] = paged ? [seen, seen && units(total) / seen] : [arrived, mean(total, arrived || 1)];
	};
	return {
		data, views,
		best(clock, page) {  // ties to the fewest rewards outstanding, then by lot
			const untried = tries && !paged ? turns.filter(k => !data.decided[k]) : [];
			if (untried.length) return untried;
			const index = paged ? page : data.rounds, time = clock - (rule.clock === "completed"), coin = tries || uniform(coins, index);
			const values = all.map(k => {
				if (measured[k] !== data.arrived[k]) measure(k);
				return PRIORITIES[rule.rule](rule, time, pulls[k], means[k], tries || uniform(dice[k], index), coin, keys.length);
			}), order = (a, b) => (values[a] < values[b]) - (values[a] > values[b]) || late(a) - late(b);
			if (paged) {
				const lot = lots.map(own => substream(own, page));
				return [...all].sort((a, b) => order(a, b) || byWord(lot[a], lot[b]));
			}
			const top = all.reduce((a, b) => order(b, a) < 0 ? b : a), equal = all.filter(k => !order(k, top));
			return [drawn(equal.sort((a, b) => keys[a] - keys[b]), uniform(ties, index))];
		},
		take(k) { data.rounds++; data.missing++; data.decided[k]++; },
		add(k, worth, place) {
			count(data, k, worth);
			if (place) views[k][place - 1]++;
		},
	};
}

// What is kept of a decision; `pull`: which draw is shown, and which of its views, where these name coins.
const allocation = (agent, arm, phase, agentCounts, armCounts, version = 0, slot = -1, awaited = false, segment = null, place = 0, pull = null) =>
	({ agent, arm, phase, agentCounts, armCounts, version, slot, awaited, segment, place, pull });

function armsState({ agent: above, arm: rule }, { agent_keys, arm_keys }, stream, { attention }) {  // all arms; or agents, then their arms
	const level = (own, key, keys) => priorityLevel(own, substream(stream, 0, 0, key), keys, attention), places = attention.length;
	const held = arm_keys.flatMap((keys, agent) => above ? [[agent]] : keys.map((_, arm) => [agent, arm])), firsts = arm_keys.map((_, agent) => held.findIndex(own => own[0] === agent));
	const outer = level(above ?? rule, 0, held.map(([agent, arm]) => above ? agent_keys[agent] : agent_keys[agent] * 2 ** 32 + arm_keys[agent][arm]));
	const inner = above ? arm_keys.map((keys, agent) => level(rule, agent_keys[agent] + 1, keys)) : [], levels = [outer, ...inner];
	return {
		data: { version: 0, neutral: [0, 0], ...above ? { agents: outer.data, inner: inner.map(own => own.data), outstanding: zeros(inner.length), views: levels.map(own => own.views) }
			: { level: outer.data, views: outer.views } },
		show: round => outer.best(round, round).slice(0, places || 1).map((k, place) => {
			const [agent, arm = inner[agent].best(inner[agent].data.rounds + 1, round)[0]] = held[k];
			outer.take(k);
			inner[agent]?.take(arm);
			return allocation(agent, arm, "play", Boolean(above), true, 0, -1, false, null, places && place + 1);
		}),
		add({ agent, arm, place }, worth) {
			outer.add(above ? agent : firsts[agent] + arm, worth, place);
			inner[agent]?.add(arm, worth, place);
		},
	};
}

function slotsState({ arm: rule }, { agent_keys: keys, pools, armOf }, stream) {  // the lowest rank; first draws are tested before second ones
	const scans = rule.rounds > 0, { start, purse: first = rule.rounds, after, points } = RANKS[rule.rule](rule), lots = substream(stream, 0, 0, 0);
	const agents = scans ? orderBy(words(substream(lots, 0), keys)) : range(keys.length), held = agents.flatMap(agent => range(rule.draws).map(draw => [agent, draw]));
	if (scans) held.sort((a, b) => a[1] - b[1]);
	const named = held.map(([agent, draw]) => keys[agent] * 2 ** 32 + draw), order = scans ? range(held.length) : orderBy(words(substream(lots, 1), named));
	const dice = words(substream(lots, 2), named), turns = words(substream(stream, 2), keys), queue = orderBy(turns);
	const data = { version: 0, neutral: [0, 0], level: { ...counts(held.length), rank: zeros(held.length, start), purse: zeros(held.length, first) } };
	const due = ({ rank, purse, decided, arrived, choice, missing }) => {  // undefined: wait for rewards
		if (choice !== null) return choice;
		let best;
		for (const k of order) {
			const waits = scans && 0 < purse[k] && purse[k] <= decided[k] - arrived[k];  // its test only
			if (!waits && (best === undefined || rank[k] < rank[best])) best = k;
		}
		return scans && missing && (best === undefined || rank[best] > start) ? undefined : best;
	};
	return {
		data,
		show() {
			const { level, neutral } = data, k = due(level);
			if (k === undefined) {  // agents in turn, and their draws
				const agent = queue[neutral[0]++ % queue.length];
				return [allocation(agent, drawn(pools[agent], uniform(turns[agent], ++neutral[1])), "waiting", false, false)];
			}
			if (scans && !level.purse[k]) level.choice = k;
			const [agent, draw] = held[k], counted = level.choice === null;
			level.rounds++; level.missing += counted;
			return [allocation(agent, armOf(agent, draw), !scans ? "play" : counted ? "trial" : "award", false, counted, 0, k, false, null, 0, [1 + draw, level.decided[k]++])];
		},
		add({ slot: k }, worth) {
			const { rank, purse, arrived, total } = data.level, earned = worth && points?.(rank[k]) || 0;
			count(data.level, k, worth);
			purse[k] += Math.floor(earned) + (uniform(dice[k], arrived[k] - 1) < earned % 1) - 1;
			if (!purse[k]) [rank[k], purse[k]] = after(arrived[k], total[k], rank[k]);
		},
	};
}

// Pages: rotations of tests, then places by score; the last goes to who is designated, whose click counts.
function laboratory({ arm: { draws, rounds, rank_rounds = 0, scores } }, { agent_keys: keys, armOf }, stream, { attention, declared }) {
	const { length } = keys, lots = substream(stream, 0, 0, 0), order = orderBy(words(substream(lots, 0), keys)), dice = words(substream(lots, 2), keys);
	const filled = Math.min(attention.filter(Boolean).length, length), everybody = filled === length, last = attention[filled - 1];
	const thinned = declared && scores !== "tests" && (filled > 1 || everybody), end = (rounds * draws + rank_rounds) * length;
	const data = { draw: zeros(length), known: zeros(length, false), views: zeros(length), block: 0, missing: 0, waited: 0,
		clicks: zeros(length), score: zeros(length, 0n), levels: keys.map(() => zeros(draws, 0n)), ranked: false };
	return {
		data,
		show(page) {
			const clock = page - 1 - data.waited, closes = data.block < draws && clock >= (data.block + 1) * rounds * length, champions = data.block + 1 === draws;
			const waits = closes && champions && data.missing > 0, turn = (waits ? page - 1 : clock) % length, designated = order[turn];
			const phase = waits ? "waiting" : clock < end ? "trial" : "award", ranks = phase === "award";
			if (closes && !waits) {
				data.block++;
				if (champions) data.score = data.levels.map(own => own.reduce((a, b) => a < b ? b : a));
				data.draw = data.levels.map((own, agent) => champions ? own.indexOf(data.score[agent]) : data.block);
				data.known.fill(champions);
			}
			data.waited += waits; data.ranked ||= ranks;
			const version = Number(data.block === draws), byScore = (a, b) => Number(data.score[b] - data.score[a]);
			const shown = ranks ? [...order].sort(byScore).slice(0, filled) : range(filled).map(place => order[(place + length - turn) % length]);
			if (ranks && thinned && !shown.includes(designated)) shown[filled - 1] = designated;
			return shown.map((agent, place) => {
				const draw = data.draw[agent], seen = attention[place];
				const counted = phase === "trial" || ranks && thinned && (everybody || agent === designated) && (seen === last || uniform(dice[agent], clock) * seen < last);
				data.known[agent] = true; data.views[agent] += counted; data.missing += counted && !version;
				return allocation(agent, armOf(agent, draw), phase, false, counted, version, draw, false, null, 0, [1 + draw, data.views[agent] - 1]);
			});
		},
		add({ agent, slot, version }, worth) {
			if (version) data.score[agent] += worth; else { data.levels[agent][slot] += worth; data.missing--; }
		},
	};
}

// ---- Mechanisms: options and defaults (null: must be given), rules, and parameters that are usual.
const alone = rule => options => ({ agent: null, arm: { rule, ...options } }), onPages = { one_place_each: false };
const twice = rule => ({ clock, arm_clock, ...own }) => ({ agent: { rule, ...own, clock }, arm: { rule, ...own, clock: arm_clock } });
const CATALOGUE = {
	ucb1: [{ constant: 2, clock: "current" }, alone("ucb"), onPages],
	"kl-ucb": [{ constant: 1, clock: "current" }, alone("kl-ucb"), onPages],
	thompson: [{ alpha: 1, beta: 1 }, alone("thompson"), onPages],
	"epsilon-greedy": [{ c: 1 }, alone("epsilon-greedy")],
	"h-ucb": [{ constant: 2, clock: "current", arm_clock: "completed" }, twice("ucb")],
	"h-thompson": [{ alpha: 1, beta: 1 }, twice("thompson")],
	reservoir: [{ rounds: null, draws: null, threshold: undefined, rank_rounds: undefined }, options => alone("threshold" in options ? "first-pass" : "best-of-draws")(
		{ ...options, ..."threshold" in options && { fallback: "best" } }), { choose: "first-pass", fallback: "best", coins: true, rank_rounds: 0, scores: "clicks" }],
	"reservoir-bars": [{ bars: null, stake: 1, draws: 16 }, alone("bars")],
	"reservoir-index": [{ draws: null, constant: null }, alone("falling-kl-ucb")],
};
const WHOLE = ["rounds", "draws", "threshold", "rank_rounds"];

export function mechanism(name, given = {}) {
	const [defaults, rules, usual] = known(name, CATALOGUE, "a mechanism"), options = { ...defaults, ...given };
	for (const [option, value] of Object.entries(options)) {
		known(option, defaults, `an option of ${name}`);
		if (value === undefined || value === usual?.[option]) delete options[option];
		else if (option.endsWith("clock")) oneOf(value, ["current", "completed"], option);
		else if (WHOLE.includes(option)) whole(value, option);
		else for (const one of ["bars", "stake"].includes(option) ? [value].flat() : [value]) positive(one, option);
	}
	if (options.threshold > options.rounds) refuse("a threshold of at most the rounds", options.threshold);
	if ([options.bars].flat().some((bar, k, all) => bar > (all[k - 1] ?? 1))) refuse("bars of at most 1 that do not rise", options.bars);
	return { name, parameters: { ...usual, ...options }, ...rules(options) };
}

function stateOf(...setup) {
	const [{ name, parameters, agent, arm, ...more }, { weights }, , { attention }] = setup, onSlots = arm.rule in RANKS;
	const there = onSlots ? !agent && arm.fallback !== "draw" : arm.rule in PRIORITIES && (agent ?? arm).rule === arm.rule;
	if (!there || Object.keys(more).length) refuse(`a mechanism that JavaScript has (${Object.keys(CATALOGUE).join(", ")})`, name);
	if (weights && !onSlots) refuse("weights for a mechanism on draws", name, "leave them out");
	if (attention.length && onSlots && arm.rule !== "best-of-draws") refuse("a mechanism that fills pages, as reservoir without threshold", name);
	return (!onSlots ? armsState : attention.length ? laboratory : slotsState)(...setup);
}

// ---- Sessions.
const entries = given => [...given instanceof Map ? given : Object.entries(given ?? {})], divisor = (a, b) => b ? divisor(b, a % b) : a;

function registrationOf(registered, weights) {
	const given = entries(registered), declared = entries(weights), names = given.map(([name]) => name), arms = given.map(([name, own]) => whole(own, `the arms of ${name}`, 1e7));
	if (!given.length) refuse("registered as agent to number of arms", registered, "give e.g. { ana: 2 }");
	for (const [name, own] of declared) {
		if (own.length !== arms[names.indexOf(name)] || !own.some(Boolean)) refuse(`a weight for each arm of ${name}, and not all 0`, own);
		own.forEach(one => one === 0 || whole(one, `each weight of ${name}`, 1000));
	}
	return { names, arms, agent_keys: range(names.length), arm_keys: arms.map(range), ...weights && { weights: Object.fromEntries(declared) } };
}

function poolOf(keys, weights = zeros(keys.length, 1)) {  // an agent's arms, each as often as its weight
	const common = weights.reduce(divisor);
	return range(keys.length).sort((a, b) => keys[a] - keys[b]).flatMap(arm => zeros(weights[arm] / common, arm));
}

function placesOf(positions) {  // none: a round shows one arm
	const declared = Array.isArray(positions), attention = declared ? positions : zeros(positions === null ? 0 : whole(positions, "positions", 1000), 1);
	if (declared && !(attention[0] > 0 && attention.every((own, k) => 0 <= own && own <= (attention[k - 1] ?? 1)))) refuse("attention from 1 to 0 that does not rise", positions);
	return { attention, declared };
}

const lastRound = (mean, draw) => mean === 1 ? 1 : 1 + Math.floor(log(draw) / logRatio(-1 / mean));

function segmentOf(name, number, mechanism, registration, stream, mean, places) {
	const own = name === null ? stream : substream(stream, 4, number), coins = substream(own, 1), tossed = countsCoins(mechanism.arm);
	return {
		number, round: 0, last: lastRound(mean, uniform(substream(own, 2), 0)), state: stateOf(mechanism, registration, substream(own, 0), places),
		worth(id, value, { agent, version, pull }) {  // of a reward, in ticks
			const [draw, index] = pull ?? [], named = pull ? substream(coins, version, registration.agent_keys[agent], draw) : coins;
			return !tossed ? ticks(value) : value === 1 || value && uniform(named, index ?? id) < value ? ONE : 0n;
		},
		file(pending) {
			const coins = [...pending].flatMap(([id, { segment, armCounts, pull }]) => tossed && segment === name && armCounts && pull ? [[id, ...pull]] : []);
			return { round: this.round, joined: [], machine: this.state.data, coins };
		},
	};
}

function checksum(text) {  // Adler-32
	let a = 1, b = 0;
	for (const byte of new TextEncoder().encode(text)) b = (b + (a = (a + byte) % 65521)) % 65521;
	return b * 65536 + a;
}

const TERMS = { seed: 0, share: 1, rewards: null, window: null, ends: "at-horizon", positions: null, history: true, segments: null };

export class Session {
	constructor(mechanism, registration, horizon, given = {}) {
		for (const term of Object.keys(given)) known(term, TERMS, "a term of sessions in JavaScript");
		const terms = { ...TERMS, ...given, segments: entries(given.segments) }, { ends, segments } = terms, stream = seedStream(terms.seed), places = placesOf(terms.positions);
		const { names, agent_keys, arm_keys, weights = {} } = registration, parts = segments.length ? segments : [[null, 1]];
		if (Math.abs(parts.reduce((total, [, part]) => total + positive(part, "a fraction", 1), -1)) > 1e-9) refuse("fractions that add up to 1", segments);
		if (registration.joined) refuse("a session without joiners", "some", "go on in Python");
		whole(horizon, "horizon"); whole(terms.window ?? 1, "window"); positive(terms.share, "share", 1);
		oneOf(terms.rewards, [null, "bernoulli"], "rewards"); oneOf(ends, ["at-horizon", "at-random"], "ends");
		const pools = arm_keys.map((keys, agent) => poolOf(keys, weights[names[agent]])), slots = agent_keys.map(key => substream(stream, 0, 0, 0, key + 1, 5));
		const seen = { ...registration, pools, armOf: (agent, draw) => drawn(pools[agent], uniform(slots[agent], draw)) };
		const all = parts.map(([name, part], k) => {
			const own = mechanism.segments ? known(name, mechanism.segments, "a segment") : mechanism;
			return [name, segmentOf(name, k, own, seen, stream, Math.max(1, even(part * horizon)), places)];
		});
		const last = ends === "at-random" ? all.reduce((total, [, own]) => total + own.last, 0) : horizon, past = { agent_of: [], arm_of: [], value_of: [], segment_of: [] };
		Object.assign(this, { last, past, segments: new Map(all), round: 0, pages: 0, places: places.attention.length, pending: new Map(), sums: zeros(names.length, 0n) });
		this.terms = { ...terms, mechanism, registration, horizon, seed: BigInt(terms.seed) };
	}
	next(name, paged) {
		const { window, ends, history, registration: { names } } = this.terms, { pending, past, places } = this;
		const segment = this.segments.get(name) ?? refuse(`one of the segments ${[...this.segments.keys()].join(", ")}`, name);
		if (paged !== places > 0) refuse("decideSlate() with positions, else decide()", "the other");
		if (this.pages >= this.last) refuse(`at most ${this.last} decisions`, "one more", "open a new session");
		if (ends === "at-random" && segment.round >= segment.last) throw new SegmentEndedError(`segment ${name} has ended`);
		for (const id of pending.keys()) {  // windows that close: 0 counts
			if (!window || this.round < id + window * (places || 1)) break;
			this.enter(id, 0);
		}
		this.pages++;
		return segment.state.show(++segment.round).map((own, k) => {
			const id = ++this.round, { agent, arm, phase, slot } = own;
			pending.set(id, Object.assign(own, { segment: name }));
			if (history) {
				past.agent_of.push(agent); past.arm_of.push(arm); past.value_of.push(null);
				if (name !== null) past.segment_of.push(segment.number);
			}
			return { id, agent: names[agent], arm, phase, slot, segment: name, place: places && k + 1 };
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
		const own = this.pending.get(id), { state, worth } = this.segments.get(own.segment);
		this.pending.delete(id);
		if (own.armCounts) state.add(own, worth(id, value, own));
		this.sums[own.agent] += ticks(value);
		if (this.terms.history) this.past.value_of[id - 1] = value;
	}
	get payoff() { return Object.fromEntries(this.terms.registration.names.map((name, k) => [name, this.terms.share * units(this.sums[k])])); }
	toJSON() {  // the session's file: JSON.stringify(session)
		const { terms, past, round, pages, sums, pending } = this, begun = {};
		for (const [name, own] of this.segments) if (name === null || own.round) begun[name] = own.file(pending);
		const rows = [...pending].map(([id, own]) => [...Object.values(own).slice(0, -1), [id]]), parts = terms.segments.length ? { begun } : begun.null;
		const body = JSON.stringify({ ...terms, ...this.places && { pages }, sums, pending: rows, ...past, ...parts, round }, written);
		return { format: "cloneproof session", version: 10, digest: checksum(body), body };
	}
	static fromJSON(file) {
		const { format, version, digest, body } = typeof file === "string" ? JSON.parse(file) : file;
		if (format !== "cloneproof session" || version !== 10) refuse("a session file of version 10", version);
		if (checksum(body) !== digest) refuse("a session file as it was saved", digest, "restore it");
		const { mechanism, registration, horizon, segments, machine, coins, joined, begun, pending, sums, round, pages = round, agent_of, arm_of, value_of,
			segment_of = [], ...terms } = JSON.parse(body);
		const live = new Session(mechanism, registration, horizon, { ...terms, segments: new Map(segments) });
		Object.assign(live, { round, pages, past: { agent_of, arm_of, value_of, segment_of } });
		refill(live.sums, sums);
		for (const [...fields] of pending) fields.pop().reduce((id, step) => (live.pending.set(id + step, allocation(...fields)), id + step), 0);
		live.pending = new Map([...live.pending].sort(([a], [b]) => a - b));
		for (const [name, data] of begun ? Object.entries(begun) : [[null, { machine, coins, round: pages }]]) {
			const segment = live.segments.get(name);
			segment.round = data.round;
			refill(segment.state.data, data.machine);
			for (const [id, ...pull] of data.coins ?? []) live.pending.get(id).pull = pull;
		}
		return live;
	}
}

export const session = (mechanism, registered, horizon, { weights, ...options } = {}) =>
	new Session(mechanism, registrationOf(registered, weights), horizon, options);
