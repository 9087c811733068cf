import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clearOf, roomyLabels } from '../src/layout/copies';
import { nowhere } from '../src/layout/nowhere';
import { headerEnd } from '../src/layout/python';
import { resize, show, showAll, startTimeline } from '../src/layout/timeline-state';
import { traceOf } from './traces';

test('a view of a gap knows the ops on both sides, and a view with an op is no gap', async () => {
  const ops = [0, 1000, 900_000].map((start, op) => ({ name: `op${op}`, start, duration: 10, device: op % 2 }));
  const whole = resize(startTimeline(await traceOf({ ops })), 800);
  assert.equal(nowhere(whole), null);
  assert.deepEqual(nowhere(show(whole, { begin: 5000, end: 6000 })), { before: 1, after: 2 });
  assert.deepEqual(nowhere(show(whole, { begin: 950_000, end: 960_000 })), { before: 2, after: -1 });
  assert.equal(nowhere(show(whole, { begin: 900_005, end: 900_006 })), null);
  assert.equal(nowhere(showAll(whole)), null);
});

test('a trace without ops is no gap', async () => {
  assert.equal(nowhere(startTimeline(await traceOf({ ops: [] }))), null);
});

test('labels of copies keep clear of each other and of arrows, and the most bytes come first', () => {
  const at = (left: number, y: number): { left: number; width: number; y: number } => ({ left, width: 50, y });
  const all = [at(0, 10), at(30, 10), at(30, 14), at(60, 30), at(60, 10), at(770, 30)];
  assert.deepEqual(roomyLabels(all, [], 800), [all[0], all[3], all[4]]);
  const shaft = { x: 70, top: 25, bottom: 60 };
  assert.deepEqual(roomyLabels(all, [shaft], 800), [all[0], all[4]]);
  const cluster = [20, 26, 33, 60].map(x => ({ x, top: 0, bottom: 40 }));
  assert.equal(clearOf(cluster, 20, 10), 33);
  assert.equal(clearOf(cluster, 20, 90), 20);
});

test('of a statement with a body the header ends at its colon', () => {
  const end = (code: string): string => code.slice(0, headerEnd(code));
  assert.equal(end('for x in loader:  # batches\n    step(x)'), 'for x in loader:');
  assert.equal(end('for x in f(lambda: 3, {1: 2}, "a:b"):\n    y'), 'for x in f(lambda: 3, {1: 2}, "a:b"):');
  assert.equal(end('with a(\n    1,  # not: here\n):\n    pass'), 'with a(\n    1,  # not: here\n):');
  assert.equal(end('async for x in y:\n  z'), 'async for x in y:');
  assert.equal(end('for x in y: z()'), '');
  assert.equal(end('format(\n  x)'), '');
});
