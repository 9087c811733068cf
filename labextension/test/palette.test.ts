import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deviceLook } from '../src/paint/palette';

test('devices of one kind share a letter and differ in colour and hatch', () => {
  const looks = [0, 1, 2, 3].map(index => deviceLook(`cuda:${index}`, false));
  assert.deepEqual(
    looks.map(({ letter }) => letter),
    ['G0', 'G1', 'G2', 'G3']
  );
  assert.equal(new Set(looks.map(({ fill }) => fill)).size, 4);
  assert.equal(new Set(looks.map(({ hatch }) => hatch)).size, 4);
  assert.equal(deviceLook('cpu', true).letter, 'C');
});

test('a device that nobody knows, and a name made to mislead, have a look too', () => {
  const other = deviceLook('npu:3', false);
  for (const name of ['constructor', '__proto__:1', '', 'cuda', 'cuda:x', 'npu:-2', `a:${'9'.repeat(400)}`]) {
    assert.match(deviceLook(name, false).fill, /^#[0-9a-f]{6}$/, name);
  }
  assert.equal(other.letter, 'D3');
});

test('an accelerator of any name is drawn as none of the others are, and two of its devices differ', () => {
  const [first, second, ...others] = ['accel:0', 'accel:1', 'cpu', 'cuda:0', 'meta'].map(each =>
    deviceLook(each, false)
  );
  assert.equal(new Set([first, second, ...others].map(({ fill }) => fill)).size, 5);
  assert.deepEqual([first.letter, second.letter], ['D0', 'D1']);
});
