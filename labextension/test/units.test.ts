import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted, countTicks, formatBytes, formatTime, timeTicks } from '../src/layout/units';

test('times and bytes have three digits that count and the unit that fits', () => {
  assert.deepEqual([0, 1, 999, 1500, 999_600, 12_340_000, 5e9, 9e13].map(formatTime), [
    '0 ns',
    '1 ns',
    '999 ns',
    '1.5 µs',
    '1 ms',
    '12.3 ms',
    '5 s',
    '1.04 d'
  ]);
  assert.deepEqual([0, 999, 1536, 3_145_728, 4e15].map(formatBytes), ['0 B', '999 B', '1.54 KB', '3.15 MB', '4000 TB']);
});

test('one thing is told in the singular', () => {
  assert.deepEqual(
    [counted(1, 'op'), counted(1234, 'op'), counted(2, 'copy', 'copies')],
    ['1 op', '1,234 ops', '2 copies']
  );
});

test('ticks are round, in view, and no more than asked for', () => {
  for (const [begin, end] of [
    [0, 7],
    [-30, 1e4],
    [123_456_789, 123_456_999],
    [0, 2 ** 53]
  ] as const) {
    for (const make of [timeTicks, countTicks]) {
      const ticks = make(begin, end, 8);
      assert(ticks.length <= 10 && ticks.every(({ time }) => time >= begin && time <= end));
      assert.equal(new Set(ticks.map(({ label }) => label)).size, ticks.length, JSON.stringify(ticks));
    }
  }
  assert.deepEqual(
    timeTicks(0, 4e6, 4).map(({ label }) => label),
    ['0 ms', '1 ms', '2 ms', '3 ms', '4 ms']
  );
});
