import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeTo, grown, revealing } from '../src/layout/reveal';
import { buildTimeline } from '../src/layout/timeline';
import { opsInTurn, traceOf } from './traces';

/** 600 ops of 10 ns, 15 ns apart; the one at 300 is followed by a long wait. */
async function timeline() {
  const ops = opsInTurn(600, op => ({ start: op * 15 + (op > 300 ? 1e9 : 0), call: 0 }));
  return buildTimeline(
    await traceOf({ ops, modules: [{ path: 'm' }], calls: [{ module: 0, begin: 4, end: 8 }] }),
    'time'
  );
}

test('an op that can be seen leaves the view where it is', async () => {
  const here = { begin: 0, end: 3000 };
  assert.equal(revealing(await timeline(), here, 1000, 10, true), null);
});

test('an op outside of the view is brought to its middle at the same zoom', async () => {
  const shown = revealing(await timeline(), { begin: 0, end: 100 }, 1000, 100, false);
  assert.deepEqual(shown, { begin: 1450, end: 1550 });
});

test('a speck is brought closer with its neighbours, without them where they are far', async () => {
  const all = await timeline();
  const near = revealing(all, all.whole, 1000, 100, true);
  assert(near && near.begin <= 94 * 15 && near.end >= 106 * 15);
  const alone = revealing(all, all.whole, 1000, 298, true);
  assert(alone && alone.end - alone.begin < 1000);
});

test('what is picked is shown whole: an op with its neighbours, a module with its first call, nothing for neither', async () => {
  const all = await timeline();
  const call = closeTo(all, -1, 0);
  assert(call && call.begin <= 60 && call.end >= 115 && call.end < 200);
  assert.equal(closeTo(all, -1, -1), null);
});

test('a view of the whole or of the end follows a trace that grows, any other stays', () => {
  const before = { begin: 0, end: 100 };
  const whole = { begin: 0, end: 200 };
  assert.deepEqual(grown(before, before, whole), whole);
  assert.deepEqual(grown({ begin: 60, end: 100 }, before, whole), { begin: 160, end: 200 });
  assert.deepEqual(grown({ begin: 20, end: 50 }, before, whole), { begin: 20, end: 50 });
});
