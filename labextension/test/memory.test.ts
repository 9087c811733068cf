import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AREA,
  ceilingOf,
  formatMemory,
  highestOf,
  holdersAt,
  layersOf,
  outlineOf,
  leftsOf,
  pointAt,
  totalOf
} from '../src/layout/memory';
import { MEMORY_KINDS, readMemory } from '../src/model/memory';
import { memoryLetter, memoryLook } from '../src/paint/memory';

const FILE = {
  device: 'cuda:0',
  limit: 1000,
  exact: true,
  parts: [
    ['parameter', 'model.blocks'],
    ['parameter', 'model.head'],
    ['activation', 'model.blocks']
  ],
  ops: [-1, 5, 10],
  bytes: [100, 100, 100, 20, 20, 20, 0, 500, 0]
};

test('layers lie on top of each other, from what stays the longest', async () => {
  const [curve] = await readMemory([FILE]);
  const layers = layersOf(curve);
  assert.deepEqual(
    layers.map(({ kind, below, bytes }) => [kind, [...below], [...bytes]]),
    [
      ['parameter', [0, 0, 0], [120, 120, 120]],
      ['activation', [120, 120, 120], [0, 500, 0]]
    ]
  );
  assert.deepEqual([...totalOf(curve)], [120, 620, 120]);
  assert.equal(highestOf(totalOf(curve)), 1);
});

test('the limit is at the top unless it is far above', async () => {
  const [near, far] = await readMemory([FILE, { ...FILE, limit: 5000 }]);
  assert.equal(ceilingOf(near, 620), 1000);
  assert.equal(ceilingOf(far, 620), 620);
});

test('what held memory at the peak is named, the largest first', async () => {
  const [curve] = await readMemory([FILE]);
  assert.deepEqual(
    holdersAt(curve, 1).map(({ kind, name, size }) => [kind, name, size]),
    [
      ['activation', 'model.blocks', 500],
      ['parameter', 'model.blocks', 100],
      ['parameter', 'model.head', 20]
    ]
  );
  assert.equal(holdersAt(curve, 0).length, 2);
});

test('an outline goes there along its top and back along its bottom, in steps', async () => {
  const [curve] = await readMemory([FILE]);
  const lefts = leftsOf(curve, 20);
  assert.deepEqual([...lefts], [0, AREA.width / 4, AREA.width / 2]);
  const [layer] = layersOf(curve);
  assert.equal(
    outlineOf(layer, lefts, 120),
    'M0.0 160.0H0.0V0.0H250.0V0.0H500.0V0.0H1000V160.0H500.0V160.0H250.0V160.0H0.0Z'
  );
  assert.deepEqual(
    [-5, 0, 249, 250, 999].map(x => pointAt(lefts, x)),
    [0, 0, 0, 1, 2]
  );
});

test('sizes are written as in an error of torch', () => {
  assert.deepEqual([0, 512, 1024, 46664192, 3 * 2 ** 30].map(formatMemory), [
    '0 B',
    '512 B',
    '1.0 KiB',
    '44.5 MiB',
    '3.0 GiB'
  ]);
});

test('memory that is damaged is refused in a sentence', async () => {
  const damages = [7, { ...FILE, parts: 'all' }, { ...FILE, bytes: [1] }, { ...FILE, parts: [['x'], ['y'], ['z']] }];
  for (const damage of damages) {
    await assert.rejects(readMemory([damage]), /trace-damaged/);
  }
});

test('no two kinds have the same colour or letter, in either theme', () => {
  for (const dark of [false, true]) {
    const looks = MEMORY_KINDS.map(kind => memoryLook(kind, dark));
    assert.equal(new Set(looks.map(({ fill }) => fill)).size, MEMORY_KINDS.length);
    assert.equal(new Set(MEMORY_KINDS.map(memoryLetter)).size, MEMORY_KINDS.length);
  }
});
