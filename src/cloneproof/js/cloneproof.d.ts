/** A mechanism as data: what `mechanism` returns, or one in each segment. */
export interface Mechanism {
  readonly name: string;
}

export interface SegmentedMechanism extends Mechanism {
  readonly segments: Readonly<Record<string, Mechanism>>;
}

type Clock = "current" | "completed";

interface Index {
  constant?: number;
  clock?: Clock;
}

interface Prior {
  alpha?: number;
  beta?: number;
}

/** The parameters of each mechanism, as in Python. */
export interface Options {
  ucb1: Index;
  "kl-ucb": Index;
  "epsilon-greedy": { c?: number };
  thompson: Prior;
  "h-ucb": Index & { arm_clock?: Clock };
  "h-thompson": Prior;
  reservoir: { rounds: number; draws: number; threshold?: number; rank_rounds?: number };
  "reservoir-bars": { bars: number | readonly number[]; stake?: number | readonly number[]; draws?: number };
  "reservoir-index": { draws: number; constant: number };
}

export function mechanism<Name extends keyof Options>(
  name: Name,
  ...options: {} extends Options[Name] ? [options?: Options[Name]] : [options: Options[Name]]
): Mechanism;

type Table<Value> = ReadonlyMap<string, Value> | Readonly<Record<string, Value>>;

export interface Terms {
  /** A whole number below 2^63; as text or bigint from 2^53 on. Equal seeds give equal decisions. */
  seed?: number | bigint | string;
  /** The part of each reward that is paid to the owner of the arm. */
  share?: number;
  rewards?: null | "bernoulli";
  /** A reward still missing after this many rounds counts as 0. */
  window?: number | null;
  ends?: "at-horizon" | "at-random";
  /** How many places a page has, or the attention of each, from 1 to 0. */
  positions?: number | readonly number[] | null;
  /** If false, a decision is forgotten once its reward is in. */
  history?: boolean;
  /** The fraction of decisions in each segment; a Map where names are whole numbers. */
  segments?: Table<number> | null;
  /** Whole numbers for the arms of agents, where the mechanism draws from arms. */
  weights?: Table<readonly number[]> | null;
}

export interface Decision {
  readonly id: number;
  readonly agent: string;
  /** Which of the agent's arms, from 0. */
  readonly arm: number;
  readonly phase: "trial" | "award" | "waiting" | "play";
  /** The draw that is shown, or -1. */
  readonly slot: number;
  readonly segment: string | null;
  /** The place on the page, from 1; 0 where a round shows one arm. */
  readonly place: number;
}

/** What JSON.stringify(session) writes, and `to_json` in Python. */
export interface SessionFile {
  readonly format: "cloneproof session";
  readonly version: number;
  readonly digest: number;
  readonly body: string;
}

export class Session {
  private constructor();
  static fromJSON(file: string | SessionFile): Session;
  /** Decisions so far, and calls of `decide` or `decideSlate` so far. */
  readonly round: number;
  readonly pages: number;
  /** The last decision, or page. */
  readonly last: number;
  readonly payoff: Readonly<Record<string, number>>;
  decide(segment?: string | null): Decision;
  decideSlate(segment?: string | null): Decision[];
  /** Enter a reward from 0 to 1: once, in any order, at any later time. */
  reward(id: number, value: number): void;
  toJSON(): SessionFile;
}

/** Open a session; `registered` has the number of arms of each agent. */
export function session(
  mechanism: Mechanism | SegmentedMechanism,
  registered: Table<number>,
  horizon: number,
  terms?: Terms,
): Session;

/** Bad input, in one sentence. */
export class CloneproofError extends Error {}

/** The end of a segment was drawn; others may go on. */
export class SegmentEndedError extends CloneproofError {}
