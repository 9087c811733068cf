import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as picks from '../src/model/picks';
import { Disposables } from '../src/view/disposables';
import { Selection } from '../src/view/selection';
import { opsInTurn, traceOf } from './traces';

/** Six ops in one module, with an error at ops 1 and 2 and a note at op 4. */
function trace() {
  const finding = (severity: string, ops: number[], site: number) => {
    return { rule: 'r', severity, cause: '', message: '', help: '', op: ops[0], ops, site };
  };
  return traceOf({
    ops: opsInTurn(6, op => ({ site: op % 3, call: 0 })),
    sites: [{ line: 1 }, { line: 2 }, { line: 3 }],
    modules: [{ path: 'm' }],
    calls: [{ module: 0, begin: 0, end: 6 }],
    findings: [finding('error', [1, 2], 1), finding('note', [4], -1)]
  });
}

test('a finding is picked with its op, module and site', async () => {
  const shown = await trace();
  assert.deepEqual(picks.pickFinding(shown, 0), { finding: 0, op: 1, module: 0, site: 1 });
  assert.equal(picks.pickFinding(shown, 7), null);
  assert.equal(picks.pickFinding(shown, -1), null);
});

test('an op is picked with the finding that names it, an op that is not there not at all', async () => {
  const shown = await trace();
  assert.deepEqual(picks.pickOp(shown, 2), { finding: 0, op: 2, module: 0, site: 2 });
  assert.deepEqual(picks.pickOp(shown, 5), { finding: -1, op: 5, module: 0, site: 2 });
  assert.equal(picks.pickOp(shown, 6), null);
});

test('a site is picked with its finding, where it has one', async () => {
  const shown = await trace();
  assert.equal(picks.pickSite(shown, 1).finding, 0);
  assert.deepEqual(picks.pickSite(shown, 2), { ...picks.NOTHING_PICKED, site: 2 });
});

test('steps go through errors and warnings and past the ends, and through ops up to the ends', async () => {
  const shown = await trace();
  const nothing = picks.NOTHING_PICKED;
  assert.equal(picks.neighbourFinding(shown, nothing, 1), 0);
  assert.equal(picks.neighbourFinding(shown, nothing, -1), -1);
  assert.equal(picks.neighbourFinding(shown, { ...nothing, finding: 0 }, 1), -1);
  assert.equal(picks.neighbourFinding(shown, { ...nothing, finding: 0 }, -1), -1);
  assert.equal(picks.neighbourOp(shown, nothing, -1), 0);
  assert.equal(picks.neighbourOp(shown, { ...nothing, op: 5 }, 1), 5);
});

test('a selection tells who listens, until they stop; a pick of nothing there is changes nothing', async () => {
  const selection = new Selection(await trace());
  const heard: number[] = [];
  const listening = new Disposables();
  selection.changed.add(listening, ({ op }) => heard.push(op));
  selection.pickFinding(0);
  selection.pickOp(99);
  selection.clear();
  listening.dispose();
  selection.pickOp(3);
  assert.deepEqual(heard, [1, -1]);
  assert.equal(selection.picked.op, 3);
});
