import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildTimeline } from '../src/layout/timeline';
import { LiveOps } from '../src/model/live';
import { opName } from '../src/model/trace';
import { frameOf, paint } from './canvas';
import { traceOf } from './traces';

/** A message of ops on device 0, and its buffers, as the kernel sends them. */
function append(start: number[], more: Record<string, unknown> = {}, device = 0): [unknown, DataView[]] {
  const values = [
    Float64Array.from(start),
    Float64Array.from(start, () => 5),
    Float64Array.from(start, () => 0),
    Float64Array.from(start, () => device),
    Float64Array.from(start, () => 0),
    Float64Array.from(start, () => 1)
  ];
  const content = {
    ...{ kind: 'append', length: start.length, names: [], devices: [], threads: [] },
    ...{ simulated: [], ops: start.length, seconds: 1.5, copies: 0, copied: 0, counts: { cpu: [start.length, 64] } },
    ...more
  };
  return [content, values.map(column => new DataView(column.buffer))];
}

const FIRST = { names: ['aten.mm'], devices: ['cpu'], threads: ['main'] };

test('a recording grows piece by piece into a trace in the order of time', () => {
  const live = new LiveOps();
  assert(live.take({ kind: 'begin', title: 'In[3]' }, []));
  assert(live.take(...append([0, 30], FIRST)));
  assert(live.take(...append([20, 50])));
  const trace = live.trace();
  assert.deepEqual([...trace.ops.start], [0, 20, 30, 50]);
  assert.equal(opName(trace, 3), 'aten.mm');
  assert.equal(buildTimeline(trace, 'time').phases.rows[2], 1);
  assert.deepEqual(live.progress.counts, [['cpu', 2, 64]]);
  assert.equal(live.isRunning, true);
  assert(live.take({ kind: 'end', ops: 4, seconds: 2 }, []));
  assert.deepEqual([live.isRunning, live.progress.ops, live.title], [false, 4, 'In[3]']);
});

test('the ops of no device have a lane, and the trace has all that a trace of a file has', async () => {
  const live = new LiveOps();
  assert(live.take(...append([0, 30], FIRST, -1)));
  const { texts } = paint(frameOf(live.trace()));
  assert(texts.some(({ text }) => text === 'no device'));
  assert.deepEqual(Object.keys(live.trace()).sort(), Object.keys(await traceOf({})).sort());
});

test('a new recording forgets the last', () => {
  const live = new LiveOps();
  live.take(...append([0], FIRST));
  live.take({ kind: 'begin', title: '' }, []);
  assert.equal(live.trace().ops.length, 0);
});

test('a message that is not what it says is refused whole', () => {
  const live = new LiveOps();
  live.take(...append([0], FIRST));
  const [content, buffers] = append([9]);
  for (const [what, message, data] of [
    ['nothing', null, []],
    ['an unknown kind', { kind: 'eval', code: '1' }, []],
    ['an unknown field', { ...(content as object), code: '1' }, buffers],
    ['counts that are none', { ...(content as object), counts: { cpu: ['1', 64] } }, buffers],
    ['too few buffers', content, buffers.slice(1)],
    ['a buffer of another length', { ...(content as object), length: 2 }, buffers],
    ['a column too many', content, [...buffers, buffers[0]]],
    ['an unknown device', ...append([9], {}, 7)],
    ['time before the beginning', ...append([-9])],
    ['time that is none', ...append([NaN])]
  ] as Array<[string, unknown, DataView[]]>) {
    assert.equal(live.take(message, data), false, what);
  }
  assert.equal(live.trace().ops.length, 1);
});

test('pretended devices are marked, and forgotten with their recording', () => {
  const live = new LiveOps();
  live.take({ kind: 'begin', title: 'a' }, []);
  live.take(...append([0], { ...FIRST, devices: ['cpu', 'cuda:0'], simulated: ['cuda:0'] }, 1));
  assert.deepEqual([...live.trace().devices.simulated], [0, 1]);
  live.take({ kind: 'begin', title: 'b' }, []);
  live.take(...append([0], { ...FIRST, devices: ['cuda:0'] }));
  assert.deepEqual([...live.trace().devices.simulated], [0]);
});
