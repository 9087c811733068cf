import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PROTOCOL, readMessage, refusal } from '../src/model/messages';

const STATE = { tracing: true, simulated: 2, max_ops: 5, running: false };
const HOLDS = { device: 'cpu', tensors: 1, parameters: 0, bytes: 8 };

test('what Python sends is read', () => {
  const samples = JSON.parse(readFileSync('tests/golden/messages.json', 'utf8')) as unknown[];
  assert.equal(samples.length, 5);
  for (const sample of samples) {
    assert.equal(typeof readMessage(sample), 'object', JSON.stringify(sample));
  }
});

test('a message that fits is handed on as it is', () => {
  const update = { kind: 'update', state: STATE, kept: [1] };
  assert.equal(readMessage(update), update);
  assert.equal(PROTOCOL, 1);
});

for (const [data, reason] of [
  [null, 'a message of an unknown kind: null'],
  ['hello', 'a message of an unknown kind: "hello"'],
  [{ kind: 'run' }, 'a message of an unknown kind: "run"'],
  [{ kind: 'constructor' }, 'a message of an unknown kind: "constructor"'],
  [{ kind: '__proto__' }, 'a message of an unknown kind: "__proto__"'],
  [{ kind: 'done' }, 'done has no request'],
  [{ kind: 'done', request: 1, code: 'x' }, 'done has an unknown field "code"'],
  [{ kind: 'done', request: 1, toString: 'x' }, 'done has an unknown field "toString"'],
  [{ kind: 'done', request: 1.5 }, 'done.request is 1.5, expected count'],
  [{ kind: 'done', request: -1 }, 'done.request is -1, expected count'],
  [{ kind: 'done', request: true }, 'done.request is true, expected count'],
  [{ kind: 'update', state: { ...STATE, tracing: 1 } }, 'update.state.tracing is 1, expected flag'],
  [{ kind: 'update', state: [] }, 'update.state is [], expected an object'],
  [{ kind: 'update', kept: {} }, 'update.kept is {}, expected a list'],
  [{ kind: 'update', kept: [1, 'x'] }, 'update.kept[] is "x", expected count'],
  [
    { kind: 'update', inventory: { devices: [{ ...HOLDS }], holdings: [], left_out: 0, cut: false } },
    'update.inventory.devices[] has no simulated'
  ],
  [{ kind: 'refused', request: 1, reason: 'x'.repeat(100_001) }, 'refused.reason is "xxx'],
  [{ kind: 'fetch', request: 1, trace: 1 }, 'a message of an unknown kind: "fetch"']
] as const) {
  test(`${JSON.stringify(data).slice(0, 80)} is refused in one line`, () => {
    const found = refusal('to_panel', data);
    assert(found !== null);
    assert(found.startsWith(reason), found);
    assert(!found.includes('\n'));
    assert(found.length < 200);
  });
}

test('what the panel sends is on the list', () => {
  for (const message of [
    { kind: 'hello', request: 1, protocol: 1, visible: true },
    { kind: 'fetch', request: 1, trace: 1 },
    { kind: 'trace_next', request: 1, cell: 'a' }
  ]) {
    assert.equal(refusal('to_kernel', message), null);
  }
  assert.match(refusal('to_kernel', { kind: 'fetch', request: 1, trace: 'x' }) ?? '', /expected count/);
});
