import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastToCome, stretchOf } from '../src/layout/collective-bars';
import { collectiveFacts } from '../src/layout/describe';
import { pickAt } from '../src/layout/pick';
import { groupRanks, rankRanges } from '../src/layout/ranks';
import { xOf } from '../src/layout/scale';
import { grow, pick, setClock, startTimeline, toggleRanks, type ITimelineState } from '../src/layout/timeline-state';
import { pickOp } from '../src/model/picks';
import { FormatError } from '../src/model/errors';
import { readTrace } from '../src/model/read';
import { fileOf, jobOf, opsInTurn, traceOf } from './traces';

function shownRanks({ stack, timeline }: ITimelineState): number[] {
  const { trace, lanes } = timeline;
  return [
    ...new Set(lanes.lanes.flatMap(({ thread }, lane) => (stack.lanes[lane] ? [trace.threads.rank[thread]] : [])))
  ];
}

test('ranks that did the same on devices of their own are one group, a rank that did more is another', async () => {
  const { groups, total } = groupRanks(await jobOf([0, 1, 2, 3, 5], [2]));
  assert.equal(total, 5);
  assert.deepEqual(groups, [
    { ranks: [0, 1, 3, 5], shown: 0, ops: 3, isLeftOut: false },
    { ranks: [2], shown: 2, ops: 4, isLeftOut: false }
  ]);
  assert.deepEqual(
    groups.map(group => rankRanges(group.ranks)),
    ['0–1, 3, 5', '2']
  );
});

test('an op on another device, in another order or that raised sets a rank apart', async () => {
  const of = async (change: (op: number, rank: number) => object): Promise<number> => {
    const ops = opsInTurn(12, op => {
      const rank = op % 3;
      return { name: `aten.op${op < 6 ? 1 : 2}`, thread: rank, device: rank + 1, ...change(op, rank) };
    });
    const threads = [0, 1, 2].map(rank => ({ name: 'MainThread', rank }));
    const devices = ['cpu', 'cuda:0', 'cuda:1', 'cuda:2'].map(name => ({ name }));
    return groupRanks(await traceOf({ ops, threads, devices })).groups.length;
  };
  assert.equal(await of(() => ({})), 1);
  assert.equal(await of((op, rank) => (rank === 2 && op > 8 ? { device: 0 } : {})), 2);
  assert.equal(await of((op, rank) => (rank === 2 && op > 8 ? { device: 1 } : {})), 2);
  assert.equal(await of((op, rank) => (rank === 1 && op > 8 ? { duration: -1 } : {})), 2);
  assert.equal(await of((op, rank) => (rank === 1 ? { name: `aten.op${op < 6 ? 2 : 1}` } : {})), 2);
});

test('of alike ranks the one with a finding is drawn, and a trace of one rank has no groups', async () => {
  const finding = { rule: 'r', severity: 'warning', cause: '', message: '', help: '', op: 1 };
  const { groups } = groupRanks(await jobOf([0, 1, 2], [], { findings: [finding] }));
  assert.deepEqual(groups, [{ ranks: [0, 1, 2], shown: 1, ops: 3, isLeftOut: false }]);
  assert.deepEqual(groupRanks(await jobOf([0])).groups, []);
  assert.deepEqual(groupRanks(await traceOf({ ops: opsInTurn(3) })).groups, []);
});

test('a group shows one rank until it is opened, and one again when it is closed', async () => {
  const start = startTimeline(await jobOf([0, 1, 2, 3], [2]));
  assert.deepEqual(shownRanks(start), [0, 2]);
  const open = toggleRanks(start, 0);
  assert.deepEqual(shownRanks(open), [0, 1, 2, 3]);
  assert.deepEqual(shownRanks(start), [0, 2]);
  assert.equal(open.stack.rows.filter(({ kind }) => kind === 'rank').length, 3);
  assert.deepEqual(shownRanks(toggleRanks(open, 0)), [0, 2]);
  assert.deepEqual(shownRanks(setClock(open, 'order')), [0, 1, 2, 3]);
  assert.deepEqual(shownRanks(grow(open, open.timeline.trace)), [0, 1, 2, 3]);
});

test('picking an op of a rank that another stands for opens its group', async () => {
  const trace = await jobOf([0, 1, 2, 3], [2]);
  const start = startTimeline(trace);
  const of = (rank: number): number => trace.ops.thread.findIndex(thread => trace.threads.rank[thread] === rank);
  const picked = (rank: number): ITimelineState => pick(start, pickOp(trace, of(rank)) ?? start.picked);
  assert.deepEqual(shownRanks(picked(0)), [0, 2]);
  assert.deepEqual(shownRanks(picked(3)), [0, 1, 2, 3]);
});

test('a collective is one from the first rank that came to the last that left', async () => {
  const { timeline, stack } = startTimeline(await jobOf([0, 1, 2, 3], [2]));
  const { ops, tracks } = timeline.collectives;
  assert.equal(ops.length, 1);
  assert.equal(ops[0].length, 4);
  assert.deepEqual([tracks.start[0], tracks.end[0]], [300, 530]);
  const stretch = stretchOf(timeline, stack, 0);
  assert(stretch);
  assert.equal(stretch.top, stack.rows[0].y);
  assert.equal(stretch.bottom, Math.max(...stack.rows.map(({ y, height }) => y + height)));
  const last = lastToCome(timeline, stack, 0);
  assert.equal(timeline.trace.threads.rank[timeline.trace.ops.thread[last]], 2);
  const facts = collectiveFacts(timeline.trace, ops[0]).map(({ label, text }) => `${label} ${text}`);
  assert.deepEqual(facts, ['ranks 0–3', 'took 230 ns', 'last to come rank 3, 30 ns after the first']);
});

test('the second collective of a name is the second in every rank, and sends of two are none', async () => {
  const names = ['c10d.allreduce_', 'c10d.send', 'c10d.allreduce_', '_c10d_functional.wait_tensor'];
  const ops = opsInTurn(8, op => ({ name: names[Math.floor(op / 2)], thread: op % 2, device: 1 + (op % 2) }));
  const threads = [0, 1].map(rank => ({ name: 'MainThread', rank }));
  const { timeline } = startTimeline(await traceOf({ ops, threads }));
  assert.deepEqual(timeline.collectives.ops, [
    [0, 1],
    [4, 5]
  ]);
});

test('the pointer finds a collective where nothing else is', async () => {
  const { timeline, stack } = startTimeline(await jobOf([0, 1, 2, 3], [2]));
  const view = { timeline, stack, range: timeline.whole, width: 1000 };
  const x = xOf(view.range, 1000, 400);
  const [title] = stack.rows;
  assert.deepEqual(pickAt(view, x, title.y + 5), { kind: 'collective', collective: 0 });
  assert.equal(pickAt(view, xOf(view.range, 1000, 220), title.y + 5), null);
  assert.equal(pickAt(view, x, stack.height + 50), null);
});

test('a rank of which only the collectives are here belongs to the one that did the same', async () => {
  const trace = await jobOf([0, 1, 2, 4, 5], [2], {
    left_out: [
      [1, 2],
      [4, -1],
      [5, -1]
    ]
  });
  const { groups } = groupRanks(trace);
  const found = groups.map(({ ranks, shown, isLeftOut }) => ({ ranks, shown, isLeftOut }));
  assert.deepEqual(found, [
    { ranks: [0], shown: 0, isLeftOut: false },
    { ranks: [1, 2], shown: 2, isLeftOut: false },
    { ranks: [4, 5], shown: 4, isLeftOut: true }
  ]);
  const file = { ...fileOf({ ops: opsInTurn(1) }), left_out: [[1]] };
  await assert.rejects(readTrace(file), FormatError);
});
