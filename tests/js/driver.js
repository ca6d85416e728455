// A season by a script, in Node and in a browser: what is decided, and the session's file. support/javascript.py does the same in Python.
export function played({ session, mechanism, Session }, { name, options, segmented, registered, horizon, rest, file, begin, end, segments, delays, rewards }) {
  const made = own => mechanism(own.name, own.options);
  const live = file ? Session.fromJSON(file)
    : session(segmented ? { name, segments: Object.fromEntries(segmented.map(own => [own.segment, made(own)])) } : made({ name, options }), new Map(registered), horizon, { ...rest, segments: new Map(rest.segments) });
  const shown = [], due = new Map(), delayOf = id => delays[(id - 1) % delays.length];
  const send = (step, id) => {
    if (!due.has(step)) due.set(step, []);
    due.get(step).push(id);
  };
  for (const id of live.pending.keys()) send(id - 1 + delayOf(id), id);  // where a round shows one arm
  for (let step = begin; step < end; step++) {
    for (const id of due.get(step) ?? []) if (live.pending.has(id)) live.reward(id, rewards[(id - 1) % rewards.length]);
    const segment = segments.length ? segments[step % segments.length] : null;
    for (const one of rest.positions ? live.decideSlate(segment) : [live.decide(segment)]) {
      shown.push([one.agent, one.arm, one.phase, one.slot, one.place]);
      if (delayOf(one.id) === 0) live.reward(one.id, rewards[(one.id - 1) % rewards.length]);
      else send(step + delayOf(one.id), one.id);
    }
  }
  return { shown, payoff: live.payoff, last: live.last, file: JSON.stringify(live) };
}
