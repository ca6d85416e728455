import { mechanism, session, Session, type Decision } from "cloneproof";

const bars = mechanism("reservoir-bars", { bars: 0.82, draws: 8 });
let live: Session = session(bars, { ana: 8, bo: 1 }, 4000, { seed: 9, segments: { code: 0.5, writing: 0.5 }, weights: { bo: [1] } });
const late: Decision[] = [];
for (let round = 0; round < 300; round++) {
  late.push(live.decide(round % 2 ? "code" : "writing"));
  if (late.length > 5) live.reward(late.shift()!.id, Number(round % 3 > 0));
  if (round === 150) live = Session.fromJSON(JSON.stringify(live));
}
session(mechanism("ucb1"), new Map([["1", 2]]), 10).decide();
session(mechanism("h-ucb", { arm_clock: "current" }), { ana: 2, bo: 1 }, 10, { positions: [1, 0.6] }).decideSlate();

// @ts-expect-error an id is a number
if (!late.length) live.reward("1", 1);
// @ts-expect-error a reservoir needs its draws
const lacking = () => mechanism("reservoir", { rounds: 3 });
// @ts-expect-error no mechanism of this name
const unknown = () => mechanism("bars");
// @ts-expect-error the clock has two words
const misspelt = () => mechanism("kl-ucb", { clock: "now" });

console.log(JSON.stringify({ payoff: live.payoff, round: live.round, odd: [lacking, unknown, misspelt].length }));
