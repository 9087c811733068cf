import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findingAt,
  isOnMinimap,
  itemAt,
  minimapTime,
  pinsOf,
  pointOfOp,
  scrollToOp,
  timeAt
} from '../src/layout/timeline-points';
import { around } from '../src/layout/scale';
import * as steps from '../src/layout/timeline-state';
import { pickFinding, pickModule, pickOp } from '../src/model/picks';
import type { ITrace } from '../src/model/trace';
import { opsInTurn, traceOf } from './traces';

/** 100 ops of 10 ns, 15 ns apart, on cuda:0 but for every fifth, with a warning at op 40 and a note at op 60. */
function trace(count = 100): Promise<ITrace> {
  const finding = (severity: string, op: number) => ({ rule: 'r', severity, cause: '', message: '', help: '', op });
  return traceOf({
    ops: opsInTurn(count, op => ({ device: op % 5 === 0 ? 0 : 1, call: op >= 20 && op < 30 ? 0 : -1 })),
    modules: [{ path: 'model' }],
    calls: [{ module: 0, parent: -1, begin: 20, end: 30, thread: 0 }],
    findings: [finding('warning', 40), finding('note', 60)]
  });
}

const GUTTER = 128;

/** A timeline of which 1000 px are plot. */
async function start(count?: number): Promise<steps.ITimelineState> {
  return steps.resize(steps.startTimeline(await trace(count)), 1000 + GUTTER);
}

function lengthOf({ range }: steps.ITimelineState): number {
  return range.end - range.begin;
}

test('a timeline starts with the whole trace, its flags and nothing picked', async () => {
  const state = await start();
  assert.deepEqual(state.range, state.timeline.whole);
  assert.deepEqual(
    state.flags.map(({ op }) => op),
    [40]
  );
  assert.deepEqual([state.picked.op, state.hovered, state.found], [-1, -1, null]);
  assert.equal(steps.plotWidth(state), 1000);
  assert.equal(steps.gutterOf(steps.resize(state, 500)), 84);
});

test('no step changes the state that it starts from', async () => {
  const state = await start();
  const before = { ...state };
  const { timeline } = state;
  steps.zoom(state, 0.5);
  steps.pan(state, 0.1);
  steps.find(state, 'op1');
  steps.hover(state, 3);
  steps.pick(state, pickOp(timeline.trace, 3) ?? state.picked);
  steps.setClock(state, 'order');
  assert.deepEqual(state, before);
});

test('zooming keeps the time under the pointer where it is', async () => {
  const state = await start();
  const time = timeAt(state, GUTTER + 300);
  const near = steps.zoom(state, 0.25, time);
  assert(Math.abs(lengthOf(near) - lengthOf(state) / 4) < 1e-6);
  assert(Math.abs(timeAt(near, GUTTER + 300) - time) < 1e-6);
  const middle = steps.zoom(state, 0.5);
  assert(Math.abs(timeAt(middle, GUTTER + 500) - timeAt(state, GUTTER + 500)) < 1e-6);
  assert.deepEqual(steps.zoom(near, 1000).range, state.timeline.whole);
});

test('panning moves by a share of the view and stops at the ends', async () => {
  const state = steps.show(await start(), { begin: 300, end: 500 });
  assert.deepEqual(steps.pan(state, 0.5).range, { begin: 400, end: 600 });
  const { whole } = state.timeline;
  assert.deepEqual(steps.pan(state, -100).range, { begin: whole.begin, end: whole.begin + 200 });
  assert.deepEqual(steps.centre(state, 700).range, { begin: 600, end: 800 });
});

test('a query finds ops, also on another clock and in a trace that grew', async () => {
  const state = steps.find(await start(), 'op1');
  assert.equal(state.found?.count, 11);
  assert.equal(state.found.tracks.order.length, 11);
  const byOrder = steps.setClock(state, 'order');
  assert.deepEqual([byOrder.timeline.clock, byOrder.found?.count], ['order', 11]);
  assert.deepEqual(byOrder.range, byOrder.timeline.whole);
  assert.equal(steps.grow(state, await trace(200)).found?.count, 111);
  assert.equal(steps.find(state, '  ').found, null);
  assert.equal(steps.find(state, 'no such op').found?.count, 0);
});

test('a view of the whole follows a trace that grows, any other stays', async () => {
  const state = await start();
  const longer = await trace(200);
  const grown = steps.grow(state, longer);
  assert.deepEqual(grown.range, grown.timeline.whole);
  assert(grown.timeline.whole.end > state.timeline.whole.end);
  const zoomed = steps.show(state, { begin: 300, end: 500 });
  assert.deepEqual(steps.grow(zoomed, longer).range, zoomed.range);
});

test('a picked op is brought into view, a picked module changes no view', async () => {
  const all = await start();
  const { trace: shown } = all.timeline;
  const far = steps.show(all, { begin: 0, end: 200 });
  const picked = pickFinding(shown, 0);
  assert(picked);
  const revealed = steps.pick(far, picked);
  assert(revealed.range.begin <= 600 && revealed.range.end >= 610);
  assert.equal(revealed.picked.op, 40);
  const module = steps.pick(far, pickModule(0));
  assert.deepEqual(module.range, far.range);
  const close = steps.showPicked(module);
  assert(close.range.begin <= 300 && close.range.end >= 445 && lengthOf(close) < 300);
  assert.equal(steps.showPicked(far), far);
});

test('a picked note has its flags, and loses them with the pick', async () => {
  const state = await start();
  const { trace: shown } = state.timeline;
  const note = steps.pick(state, pickFinding(shown, 1) ?? state.picked);
  assert.deepEqual(
    note.flags.map(({ op }) => op),
    [60, 40]
  );
  assert.equal(steps.pick(note, state.picked).flags.length, 1);
});

test('the pointer finds the ops, the calls, the pins and the minimap where they are painted', async () => {
  const state = await start();
  const { timeline, stack } = state;
  const { header } = timeline;
  const lane = stack.lanes[timeline.lanes.laneOf[41]];
  const xOf = (op: number): number =>
    GUTTER + ((timeline.start[op] + 5 - state.range.begin) / lengthOf(state)) * steps.plotWidth(state);
  const y = header.height + lane.y + lane.height / 2;
  assert.deepEqual(itemAt(state, { x: xOf(41), y }, 0), { kind: 'op', op: 41 });
  assert.deepEqual(itemAt(state, { x: xOf(41), y: y - 30 }, 30), { kind: 'op', op: 41 });
  assert.equal(itemAt(state, { x: GUTTER - 1, y }, 0), null);
  const calls = stack.rows.find(({ kind }) => kind === 'calls');
  assert(calls);
  assert.deepEqual(itemAt(state, { x: xOf(25), y: header.height + calls.y + 2 }, 0), { kind: 'call', call: 0 });
  const [pin] = pinsOf(state);
  assert.equal(findingAt(state, { x: pin.x + GUTTER + 3, y: header.flags.y + 2 }), 0);
  assert.equal(findingAt(state, { x: pin.x + GUTTER + 30, y: header.flags.y + 2 }), -1);
  assert.equal(findingAt(state, { x: pin.x + GUTTER, y: header.axis.y }), -1);
  assert(isOnMinimap(state, { x: 0, y: 3 }) && !isOnMinimap(state, { x: 0, y: header.height }));
  const zoomed = steps.show(state, { begin: 300, end: 500 });
  assert.equal(minimapTime(zoomed, GUTTER), state.timeline.whole.begin);
});

test('the rows scroll only as far as a picked op needs', async () => {
  const state = await start();
  const { header } = state.timeline;
  assert.equal(scrollToOp(state, 0, 0, 400), 0);
  const row = state.stack.lanes[state.timeline.lanes.laneOf[1]];
  assert.equal(scrollToOp(state, 1, 0, header.height + 20), row.y - 10);
});

test('the card of a picked op has its point in the op while that is in view, and none where it is not', async () => {
  const state = await start();
  const point = pointOfOp(state, 40, 0, 400);
  assert(point !== null);
  assert.deepEqual(itemAt(state, point, 0), { kind: 'op', op: 40 });
  assert.equal(pointOfOp(steps.show(state, { begin: 0, end: 100 }), 40, 0, 400), null);
  assert.equal(pointOfOp(state, 40, 300, 400), null);
});

test('a view stays on its ops where a longer trace folds what was idle between them', async () => {
  const story = (count: number) =>
    traceOf({ ops: opsInTurn(count, op => ({ start: op < 50 ? op * 20 : 4e9 + op * 20 })) });
  const before = steps.resize(steps.startTimeline(await story(60)), 1000 + GUTTER);
  const near = steps.show(
    before,
    around(before.timeline.start[10], before.timeline.end[12], before.timeline.whole, 0.5)
  );
  const after = steps.grow(near, await story(90));
  assert(after.range.begin < after.timeline.start[10] && after.range.end > after.timeline.end[12]);
  assert(Math.abs(lengthOf(after) - lengthOf(near)) < 1);
});
