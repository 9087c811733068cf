import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { countTicks, formatBytes, formatTime, shortOpName, timeTicks } from '../src/layout/units';
import { sourceLabel } from '../src/model/trace';
import { filledIn } from '../src/model/words/catalogue';

interface IGolden {
  readonly bytes: ReadonlyArray<readonly [count: number, text: string]>;
  readonly times: ReadonlyArray<readonly [nanoseconds: number, text: string]>;
  readonly counts: ReadonlyArray<readonly [count: number, ...words: string[]]>;
  readonly ops: ReadonlyArray<readonly [name: string, short: string]>;
}

const golden = JSON.parse(readFileSync('tests/golden/numbers.json', 'utf8')) as IGolden;

test('bytes are worded as by Python', () => {
  assert.deepEqual(
    golden.bytes.map(([bytes]) => [bytes, formatBytes(bytes)]),
    golden.bytes
  );
});

test('times are worded as by Python', () => {
  assert.deepEqual(
    golden.times.map(([nanoseconds]) => [nanoseconds, formatTime(nanoseconds)]),
    golden.times
  );
});

test('things are counted as by Python, one of them in the singular', () => {
  for (const [count, ...words] of golden.counts) {
    const [one, many = `${one}s`] = words.length === 3 ? words : [words[0]];
    assert.equal(filledIn(`{count:${one}|${many}}`, { count }), words.at(-1));
  }
});

test('an op has the short name that it has in Python', () => {
  assert.deepEqual(
    golden.ops.map(([name]) => [name, shortOpName(name)]),
    golden.ops
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

test('a file goes by its last part on every system, as by Python', () => {
  for (const file of ['/project/train.py', 'C:\\project\\train.py', 'train.py']) {
    assert.equal(sourceLabel(-1, file), 'train.py');
  }
});
