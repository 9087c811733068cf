import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVERYTHING, filterOps } from '../src/layout/filter';
import { Scroll, tableRows } from '../src/layout/table';
import { traceOf } from './traces';

async function story() {
  return traceOf({
    ops: [
      { name: 'aten.mm', start: 0, duration: 30, device: 1, call: 1, site: 0 },
      { name: 'aten.add', start: 40, duration: 10, device: 0, call: 0, site: 1 },
      { name: 'aten.relu', start: 60, duration: -1, device: 1, site: 2 }
    ],
    modules: [{ path: 'net' }, { path: 'net.head', parent: 0, type: 'Linear' }],
    calls: [
      { module: 0, begin: 0, end: 2 },
      { module: 1, parent: 0, begin: 0, end: 1 }
    ],
    sites: [
      { file: 'a.py', line: 3, text: 'self.head(x)' },
      { file: 'a.py', line: 4, text: 'x + 1' },
      { file: 'lib.py', line: 90, text: 'relu(x)', caller: 1 }
    ]
  });
}

test('words are found in the op, its device, its module, its line; all words must be', async () => {
  const trace = await story();
  const found = (text: string): number[] => [...filterOps(trace, { ...EVERYTHING, text })];
  assert.deepEqual(found('MM'), [0]);
  assert.deepEqual(found('cuda:0'), [0, 2]);
  assert.deepEqual(found('linear'), [0]);
  assert.deepEqual(found('a.py net'), [0, 1]);
  assert.deepEqual(found('nowhere'), []);
  assert.deepEqual(found('  '), [0, 1, 2]);
});

test('a module is meant with all below it, a line with what it called in packages', async () => {
  const trace = await story();
  assert.deepEqual([...filterOps(trace, { ...EVERYTHING, module: 0 })], [0, 1]);
  assert.deepEqual([...filterOps(trace, { ...EVERYTHING, module: 1 })], [0]);
  assert.deepEqual([...filterOps(trace, { ...EVERYTHING, source: { file: 'a.py', line: 4 } })], [1, 2]);
  assert.deepEqual([...filterOps(trace, { ...EVERYTHING, device: 0 })], [1]);
});

test('rows are sorted by each column, both ways', async () => {
  const trace = await story();
  const sorted = (key: Parameters<typeof tableRows>[2]['key'], falling = false): number[] => [
    ...tableRows(trace, EVERYTHING, { key, falling })
  ];
  assert.deepEqual(sorted('name'), [1, 0, 2]);
  assert.deepEqual(sorted('took', true), [0, 1, 2]);
  assert.deepEqual(sorted('device'), [1, 0, 2]);
  assert.deepEqual(sorted('line'), [0, 1, 2]);
  assert.deepEqual(sorted('module', true), [0, 1, 2]);
  assert.deepEqual(sorted('id', true), [2, 1, 0]);
});

test('the first and the last of any number of rows can be scrolled to', () => {
  for (const count of [0, 1, 15, 16, 17, 1000, 5_000_000]) {
    const scroll = new Scroll(count, 24, Math.min(384, count * 24));
    const lastTop = Math.max(0, count - scroll.viewHeight / 24);
    assert(scroll.height <= 12_000_000);
    assert.equal(scroll.rowAt(0), 0);
    assert(Math.abs(scroll.rowAt(scroll.height - scroll.viewHeight) - lastTop) < 1e-6, `${count}`);
    for (const row of [0, Math.floor(count / 3), lastTop].filter(at => at <= lastTop)) {
      assert(Math.abs(scroll.rowAt(scroll.scrollTopOf(row)) - row) < 1e-6);
    }
  }
});
