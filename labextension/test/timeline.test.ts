import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arrowsIn } from '../src/layout/copies';
import { opFacts } from '../src/layout/describe';
import { flagsOf, pinsIn } from '../src/layout/flags';
import { foldedTicks, momentAt } from '../src/layout/folds';
import { pickAt } from '../src/layout/pick';
import { around, panned, timeOf, xOf, zoomed } from '../src/layout/scale';
import { buildStack, rowsIn } from '../src/layout/stack';
import { buildTimeline } from '../src/layout/timeline';
import type { ITrace } from '../src/model/trace';
import { opsInTurn, seeded, traceOf } from './traces';

test('each device of each thread has a lane of its own, in the order of threads and devices', async () => {
  const ops = opsInTurn(6, op => ({ device: op % 2, thread: op < 3 ? 1 : 0 }));
  const trace = await traceOf({ ops, threads: [{ name: 'a' }, { name: 'b' }] });
  const { lanes } = buildTimeline(trace, 'time');
  assert.deepEqual(
    lanes.lanes.map(({ thread, device }) => [thread, device]),
    [
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1]
    ]
  );
  assert.deepEqual([...lanes.laneOf], [2, 3, 2, 1, 0, 1]);
});

test('lanes stand in the order of devices, not in that of their first ops', async () => {
  const names = ['cuda:10', 'npu:0', 'cuda:2', 'cpu', 'mps'];
  const trace = await traceOf({
    ops: opsInTurn(5, op => ({ device: op })),
    devices: names.map(name => ({ name, simulated: 0 }))
  });
  assert.deepEqual(
    buildTimeline(trace, 'time').lanes.lanes.map(({ device }) => names[device]),
    ['cpu', 'cuda:2', 'cuda:10', 'mps', 'npu:0']
  );
});

test('ops that overlap in one thread and device spill into further lanes, and none vanishes', async () => {
  const ops = opsInTurn(9, op => ({ start: op, duration: 100 }));
  const { lanes } = buildTimeline(await traceOf({ ops }), 'time');
  assert.deepEqual(
    lanes.lanes.map(({ spill }) => spill),
    [0, 1, 2, 3]
  );
  assert.equal(lanes.tracks.order.length, 9);
});

test('a device that only gave data has a lane for its arrows to start in', async () => {
  const trace = await traceOf({ ops: opsInTurn(1), copies: [{ op: 0, from: 0, to: 1, bytes: 8 }] });
  const { lanes, copies } = buildTimeline(trace, 'time');
  assert.equal(lanes.lanes.length, 2);
  assert.deepEqual(copies.pairs, [[0, 1]]);
});

test('a copy says whether its memory was pinned and whether the host waited', async () => {
  const copies = [
    { op: 0, from: 0, to: 1, bytes: 8, pinned: 1, non_blocking: 1 },
    { op: 1, from: 0, to: 1, bytes: 8, pinned: 0, non_blocking: 0 }
  ];
  const trace = await traceOf({ ops: opsInTurn(2), copies });
  const texts = [0, 1].map(op => opFacts(trace, op).find(({ label }) => label === 'copy')?.text ?? '');
  assert.match(texts[0], /8 B, pinned, non-blocking$/);
  assert.match(texts[1], /8 B$/);
});

test('the tensor of a finding has a lane to come from, though nothing ran there', async () => {
  const culprit = { name: 'model.head.weight', device: 'cpu' };
  const finding = { rule: 'r', severity: 'error', cause: '', message: '', help: '', op: 1, culprit };
  const { lanes } = buildTimeline(await traceOf({ ops: opsInTurn(2), findings: [finding] }), 'time');
  assert.deepEqual(
    lanes.lanes.map(({ device }) => device),
    [0, 1]
  );
});

test('calls span their own ops, also where threads take turns', async () => {
  const ops = opsInTurn(6, op => ({ thread: op % 2, call: op % 2 }));
  const trace = await traceOf({
    ops,
    threads: [{ name: 'a' }, { name: 'b' }],
    modules: [{ path: 'm' }, { path: 'n' }],
    calls: [
      { module: 0, begin: 0, end: 5, thread: 0 },
      { module: 1, begin: 1, end: 6, thread: 1 }
    ]
  });
  const { tracks, rows } = buildTimeline(trace, 'time').calls;
  assert.deepEqual(rows, [
    { thread: 0, depth: 0 },
    { thread: 1, depth: 0 }
  ]);
  assert.deepEqual([...tracks.start], [0, 15]);
  assert.deepEqual([...tracks.end], [70, 85]);
});

test('a call without ops has no band', async () => {
  const trace = await traceOf({
    ops: opsInTurn(2),
    modules: [{ path: 'm' }],
    calls: [{ module: 0, begin: 1, end: 1 }]
  });
  assert.equal(buildTimeline(trace, 'time').calls.rows.length, 0);
});

test('a value that is read on the CPU waits for no device and has no tick', async () => {
  const trace = await traceOf({ ops: opsInTurn(4, op => ({ kind: 'sync', device: op - 1 })) });
  const { syncs, lanes } = buildTimeline(trace, 'time');
  assert.deepEqual(
    [...syncs.order].map(op => lanes.lanes[lanes.laneOf[op]].device),
    [1, 2]
  );
});

/** Three findings of 40 ops each, the last a note. */
function found(): Promise<ITrace> {
  const findings = ['error', 'warning', 'note'].map((severity, i) => {
    const ops = Array.from({ length: 40 }, (_, at) => 3 * at + i);
    return { rule: 'r', severity, cause: '', message: '', help: '', op: i, ops };
  });
  return traceOf({ ops: opsInTurn(120), findings });
}

test('an error and a warning flag one op each, a note none, and the picked finding all of its ops', async () => {
  const trace = await found();
  const flagged = (picked: number): number[][] => {
    const flags = flagsOf(trace, picked);
    return [0, 1, 2].map(finding => flags.filter(flag => flag.finding === finding).map(({ op }) => op));
  };
  assert.deepEqual(flagged(-1), [[0], [1], []]);
  assert.deepEqual(
    flagged(2).map(ops => ops.length),
    [1, 1, 40]
  );
});

test('of flags that would touch, the worst is shown, or the picked one', async () => {
  const trace = await found();
  const { start, whole } = buildTimeline(trace, 'time');
  const shown = (picked: number, width: number) => pinsIn(flagsOf(trace, picked), start, whole, width);
  assert.deepEqual(
    [-1, 1].map(picked => shown(picked, 100)[0].finding),
    [0, 1]
  );
  assert(shown(1, 100).every(({ x }, i, pins) => pins.every((other, k) => k === i || Math.abs(other.x - x) >= 6)));
  assert.equal(shown(1, 10_000).length, 41);
});

test('phases are runs of ops', async () => {
  const phase = ['forward', 'forward', 'backward', 'optimizer', 'other', 'forward'];
  const trace = await traceOf({ ops: opsInTurn(6, op => ({ phase: phase[op] })) });
  const { phases } = buildTimeline(trace, 'time');
  assert.deepEqual([...phases.rows], [0, 2, 3, 4]);
  assert.deepEqual([...phases.start], [0, 75, 30, 45]);
});

test('a trace without ops, with one op, and with absurd times has a timeline', async () => {
  for (const ops of [[], opsInTurn(1), opsInTurn(3, op => ({ start: op * 2 ** 51, duration: 2 ** 52 }))]) {
    const { whole } = buildTimeline(await traceOf({ ops }), 'time');
    assert(Number.isFinite(whole.begin) && whole.end > whole.begin);
  }
});

test('in order, each op is as wide as the next', async () => {
  const { start, end } = buildTimeline(
    await traceOf({ ops: opsInTurn(3, op => ({ duration: op * 900 }), 10, 2000) }),
    'order'
  );
  assert.deepEqual([...start], [0, 1, 2]);
  assert.deepEqual([...end], [1, 2, 3]);
});

test('in order, a few ops fill the width', async () => {
  const { whole } = buildTimeline(await traceOf({ ops: opsInTurn(3) }), 'order');
  assert(whole.begin > -0.5 && whole.end < 3.5);
});

test('arrows gather copies without losing one or a byte of them', async () => {
  const random = seeded(3);
  const ops = opsInTurn(300, () => ({ device: random() < 0.5 ? 1 : 2 }));
  const copies = ops.map((op, i) => ({
    op: i,
    from: 0,
    to: op['device'] as number,
    bytes: Math.floor(random() * 1000)
  }));
  const timeline = buildTimeline(await traceOf({ ops, copies }), 'time');
  for (const width of [100, 900, 5000]) {
    const arrows = arrowsIn(timeline.copies, timeline.whole, width);
    assert.equal(
      arrows.reduce((sum, { count }) => sum + count, 0),
      300
    );
    assert.equal(
      arrows.reduce((sum, { bytes }) => sum + bytes, 0),
      copies.reduce((sum, { bytes }) => sum + bytes, 0)
    );
  }
});

test('arrows stand still while the view pans', async () => {
  const ops = opsInTurn(200);
  const timeline = buildTimeline(await traceOf({ ops, copies: ops.map((_, op) => ({ op, from: 0, to: 1 })) }), 'time');
  const at = (begin: number): number[] =>
    arrowsIn(timeline.copies, { begin, end: begin + 1000 }, 800).map(({ copy }) => copy);
  assert.deepEqual(at(500).slice(1, 5), at(510).slice(1, 5));
});

test('time and pixels are each other’s inverse, and zooming keeps the time under the pointer', () => {
  const whole = { begin: 0, end: 1e9 };
  const random = seeded(5);
  for (let i = 0; i < 50; i++) {
    const begin = random() * 9e8;
    const range = { begin, end: begin + 1 + random() * 9e7 };
    const time = range.begin + random() * (range.end - range.begin);
    assert(Math.abs(timeOf(range, 777, xOf(range, 777, time)) - time) < 1e-3);
    const closer = zoomed(range, whole, 0.5, time);
    assert(Math.abs(xOf(closer, 777, time) - xOf(range, 777, time)) < 1);
  }
});

test('the view never leaves the trace and never becomes empty', () => {
  const whole = { begin: -10, end: 1000 };
  assert.deepEqual(panned({ begin: 0, end: 100 }, whole, -500), { begin: -10, end: 90 });
  assert.deepEqual(panned({ begin: 0, end: 100 }, whole, 5000), { begin: 900, end: 1000 });
  assert.deepEqual(zoomed({ begin: 0, end: 100 }, whole, 1e9, 50), whole);
  const closest = zoomed({ begin: 0, end: 100 }, whole, 1e-9, 50);
  assert(closest.end - closest.begin >= 1);
  const shown = around(50, 50, whole, 0.5);
  assert(shown.begin < 50 && shown.end > 50);
});

test('a point picks the op that is drawn there', async () => {
  const random = seeded(11);
  const ops = opsInTurn(80, () => ({ device: Math.floor(random() * 3), duration: Math.floor(random() * 10) }));
  const timeline = buildTimeline(await traceOf({ ops }), 'time');
  const stack = buildStack(timeline);
  const view = { timeline, stack, range: timeline.whole, width: 4000 };
  for (let op = 0; op < 80; op++) {
    const { y, height } = stack.lanes[timeline.lanes.laneOf[op]];
    const middle = (timeline.start[op] + timeline.end[op]) / 2;
    assert.deepEqual(pickAt(view, xOf(view.range, 4000, middle), y + height / 2), { kind: 'op', op });
  }
  assert.equal(pickAt(view, 2000, 10_000), null);
});

test('rows lie below each other, and those in view are found among ten thousand', async () => {
  const threads = Array.from({ length: 5000 }, (_, id) => ({ name: `t${id}` }));
  const trace = await traceOf({ ops: opsInTurn(5000, op => ({ thread: op })), threads });
  const stack = buildStack(buildTimeline(trace, 'time'));
  assert(stack.rows.every((row, i) => i === 0 || row.y >= stack.rows[i - 1].y + stack.rows[i - 1].height));
  const seen = rowsIn(stack, 50_000, 50_400);
  const first = stack.rows.indexOf(seen[0]);
  const [above, below] = [stack.rows[first - 1], stack.rows[first + seen.length]];
  assert(seen.length > 1 && above.y + above.height < 50_000 && below.y > 50_400);
  assert.deepEqual(seen, stack.rows.slice(first, first + seen.length));
});

/** Six ops on two devices, of which the second to the fifth are in a region and the third in one that is off within it. */
const underAutocast = (): Promise<ITrace> => {
  const region = { thread: 0, device: 'cpu', dtype: 'bfloat16' };
  return traceOf({
    ops: opsInTurn(6, op => ({ device: op === 4 ? 1 : 0, start: 10 * op, duration: 10 })),
    autocasts: [
      { ...region, begin: 1, end: 5, enabled: 1 },
      { ...region, begin: 2, end: 3, enabled: 0 }
    ]
  });
};

test('the card of an op names the dtype of its region of autocast', async () => {
  const trace = await underAutocast();
  const dtypesOf = (op: number): string[] =>
    opFacts(trace, op)
      .filter(({ key }) => key === 'fact.autocast')
      .map(({ text }) => text);
  assert.deepEqual([1, 2, 4, 5].map(dtypesOf), [['bfloat16'], [], [], []]);
});

test('long stretches without an op are drawn short, with round times between them', async () => {
  const second = 1e9;
  const starts = [0, 10, 3 * second, 3 * second + 40, 8 * second, 8 * second + 50];
  const timeline = buildTimeline(await traceOf({ ops: opsInTurn(6, op => ({ start: starts[op] })) }), 'time');
  const { folds, start, end, whole } = timeline;
  assert.deepEqual(
    folds.map(({ from, to }) => [from, to]),
    [
      [20, 3 * second],
      [3 * second + 50, 8 * second]
    ]
  );
  assert(whole.end - whole.begin < 200, 'what is idle leaves room for what is not');
  assert.deepEqual(
    [...start].map((from, op) => Math.round(end[op] - from)),
    Array<number>(6).fill(10)
  );
  starts.forEach((time, op) => {
    assert.equal(Math.round(momentAt(folds, start[op])), time);
  });
  const ticks = foldedTicks(folds, whole, 8);
  for (const { time } of ticks) {
    assert(folds.every(({ begin, end: to }) => time <= begin || time >= to));
  }
  assert.deepEqual(buildTimeline(timeline.trace, 'order').folds, []);
});

test('idle time is folded where it leaves no room, not where it is one part among others', async () => {
  const millisecond = 1e6;
  const evenly = opsInTurn(20, op => ({ start: op * 300 * millisecond, duration: 150 * millisecond }));
  assert.deepEqual(buildTimeline(await traceOf({ ops: evenly }), 'time').folds, []);
  const short = opsInTurn(2, op => ({ start: op * 99 * millisecond }));
  assert.deepEqual(buildTimeline(await traceOf({ ops: short }), 'time').folds, []);
  const overlapped = [
    ...opsInTurn(1, () => ({ duration: 4e9, device: 1 })),
    ...opsInTurn(1, () => ({ start: 3.9e9, device: 0 }))
  ];
  assert.deepEqual(buildTimeline(await traceOf({ ops: overlapped }), 'time').folds, []);
});
