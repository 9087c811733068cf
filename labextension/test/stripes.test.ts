import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { JsonObject } from '../src/model/findings';
import { readOutline } from '../src/model/outline';
import {
  countsInWords,
  countsOf,
  latest,
  onePerTrace,
  rowsOf,
  split,
  withEarlier,
  withRunSince,
  type IEntry
} from '../src/model/entries';
import { stripesOf, type IStripe } from '../src/model/stripes';
import { stripeCard } from '../src/view/stripe';
import { openPage, wordsIn } from './page';

interface ILine {
  readonly line: number;
  readonly ops: readonly number[];
}

/** A trace of a run of `cell`, whose lines did what `lines` says on cpu and cuda:0. */
function data(cell: string, text: string, lines: readonly ILine[], finding = 0): JsonObject {
  const strings = ['', 'cpu', 'cuda:0', 'f', cell, text, 'm'];
  const none = { offsets: [0], flat: [] };
  const sites = (value: number): number[] => lines.map(() => value);
  const offsets = lines.map((_, i) => i * 2);
  return {
    format: 'devtrace',
    version: 1,
    title: '',
    recorded: '',
    producer: '',
    strings,
    devices: { name: [1, 2], simulated: [0, 1] },
    sites: {
      file: sites(3),
      line: lines.map(({ line }) => line),
      column: sites(0),
      end_line: lines.map(({ line }) => line),
      end_column: sites(1),
      function: sites(0),
      text: sites(0),
      cell: sites(7),
      cell_id: sites(4),
      package: sites(0),
      caller: sites(-1)
    },
    sources: { file: [3], text: [5], line: [1], cell: [7], cell_id: [4] },
    shapes: { dims: none },
    modules: { path: [], type: [], parent: [], site: [], op: [], ran: [] },
    calls: { module: [], parent: [], begin: [], end: [], thread: [], training: [] },
    tensors: { device: [], dtype: [], shape: [], bytes: [], producer: [], site: [], role: [], name: [], source: [] },
    threads: { name: [0], rank: [0] },
    ops: {
      name: [0, 0],
      start: [7000, 8000],
      duration: [10, 5e8],
      device: [0, 1],
      kind: [0, 0],
      phase: [0, 0],
      call: [-1, -1],
      site: [-1, -1],
      thread: [0, 0],
      inputs: { offsets: [0, 0, 0], flat: [] },
      outputs: { offsets: [0, 0, 0], flat: [] },
      forward: [-1, -1],
      grad: [0, 0]
    },
    copies: { op: [], from: [], to: [], bytes: [], pinned: [], non_blocking: [] },
    moves: { module: [], site: [], op: [], device: [], tensors: [] },
    errors: { op: [], type: [], message: [] },
    ledger: {
      site: lines.map((_, i) => i),
      ops: { offsets: [...offsets, lines.length * 2], flat: lines.flatMap(({ ops }) => ops) },
      h2d: sites(1),
      d2h: sites(0),
      d2d: sites(0),
      syncs: sites(0),
      cpu_compute: sites(0),
      bytes: sites(8)
    },
    findings:
      finding === 0
        ? []
        : [{ rule: 'r', severity: 'error', cause: 'c', message: 'm', help: '', site: finding - 1, op: 1, ops: [1] }],
    truncated: 0,
    notes: []
  };
}

async function entry(label: string, cell: string, trace: JsonObject): Promise<IEntry> {
  const { outline, ops, seconds } = await readOutline(trace);
  return { key: label, label, cell, seconds, ops, outline, number: -1, isEarlier: false };
}

const A = 'x = 1\ny = 2\nz = 3';

test('an outline has the ledger and the findings, and says how many ops there were and how long they took', async () => {
  const read = await readOutline(data('a', A, [{ line: 2, ops: [1, 2] }], 1));
  assert.equal(read.ops, 2);
  assert.equal(read.seconds, 0.500001);
  assert.equal(read.outline.ops.length, 0);
  assert.equal(read.outline.ledger.length, 1);
  assert.equal(read.outline.findings?.[0].site, 0);
  assert.equal(read.outline.findings[0].op, -1);
});

test('the golden traces have outlines', async () => {
  for (const name of ['head', 'odd', 'empty']) {
    const golden = JSON.parse(readFileSync(`tests/golden/${name}.devtrace`, 'utf8')) as { ops: { grad: unknown } };
    const { outline, ops } = await readOutline(golden);
    assert.equal(outline.ops.length, 0);
    assert.equal(typeof ops, 'number');
  }
});

test('the sites of one line are added up', async () => {
  const lines = [
    { line: 2, ops: [1, 0] },
    { line: 2, ops: [2, 5] },
    { line: 3, ops: [0, 1] }
  ];
  const cell = stripesOf([await entry('In[7]', 'a', data('a', A, lines))]).get('a');
  assert.deepEqual(
    cell?.stripes.map(({ line, text, devices, h2d, bytes }) => [
      line,
      text,
      devices.map(({ device, ops }) => `${device} ${ops}`),
      h2d,
      bytes
    ]),
    [
      [2, 'y = 2', ['cuda:0 5', 'cpu 3'], 2, 16],
      [3, 'z = 3', ['cuda:0 1'], 1, 8]
    ]
  );
});

test('of a cell that ran again only the last run counts', async () => {
  const first = await entry(
    'In[7]',
    'a',
    data(
      'a',
      A,
      [
        { line: 1, ops: [1, 0] },
        { line: 2, ops: [1, 0] }
      ],
      1
    )
  );
  const second = await entry('In[8]', 'a', data('a', A, [{ line: 2, ops: [0, 1] }]));
  const cell = stripesOf([first, second]).get('a');
  assert.deepEqual(
    cell?.stripes.map(({ line, label }) => [line, label]),
    [[2, 'In[8]']]
  );
  assert.deepEqual(cell.marks, []);
});

test('of a cell that others call, each line has the newest trace that ran it', async () => {
  const first = await entry(
    'In[7]',
    'b',
    data(
      'a',
      A,
      [
        { line: 1, ops: [1, 0] },
        { line: 2, ops: [1, 0] }
      ],
      1
    )
  );
  const second = await entry('In[8]', 'c', data('a', A, [{ line: 2, ops: [0, 1] }]));
  const cell = stripesOf([first, second]).get('a');
  assert.deepEqual(
    cell?.stripes.map(({ line, label }) => [line, label]),
    [
      [1, 'In[7]'],
      [2, 'In[8]']
    ]
  );
  assert.deepEqual(
    cell.marks.map(({ label }) => label),
    ['In[7]']
  );
});

test('a finding in a line that has run since without one is history', async () => {
  const first = await entry('In[7]', 'b', data('a', A, [{ line: 2, ops: [1, 0] }], 1));
  const second = await entry('In[8]', 'c', data('a', A, [{ line: 2, ops: [0, 1] }]));
  assert.deepEqual(stripesOf([first, second]).get('a')?.marks, []);
});

test('a trace of another text of the cell says nothing of this one', async () => {
  const first = await entry('In[7]', 'b', data('a', 'old\ny = 2', [{ line: 1, ops: [1, 0] }]));
  const second = await entry('In[8]', 'c', data('a', A, [{ line: 2, ops: [0, 1] }]));
  assert.deepEqual(
    stripesOf([first, second])
      .get('a')
      ?.stripes.map(({ line }) => line),
    [2]
  );
});

test('the latest trace of each cell is told from those of its earlier runs', async () => {
  const entries = await Promise.all(
    [
      ['1', 'a'],
      ['2', 'b'],
      ['3', 'a'],
      ['4', ''],
      ['5', '']
    ].map(([label, cell]) => entry(label, cell, data('a', A, [])))
  );
  assert.deepEqual(
    latest(entries).map(({ label }) => label),
    ['2', '3', '4', '5']
  );
});

test('the traces of an earlier kernel are told from those that the kernel has dropped, and from the one that just came', async () => {
  const entries = await Promise.all(['1', '2', '3', '4', '5'].map(label => entry(label, label, data(label, A, []))));
  const known = entries.map((each, i) => (i === 3 ? { ...each, number: 2 } : each));
  const marked = withEarlier(known, ({ label }) => label === '5', [2]);
  assert.deepEqual(
    marked.filter(({ isEarlier }) => isEarlier).map(({ label }) => label),
    ['1', '2']
  );
  assert.deepEqual(
    latest(marked).map(({ label }) => label),
    ['3', '4', '5']
  );
});

test('three clean traces in a row are one row, below the newest', async () => {
  const found = await entry('found', 'f', data('f', A, [{ line: 1, ops: [1, 0] }], 1));
  const clean = await Promise.all(['1', '2', '3', '4'].map(label => entry(label, label, data(label, A, []))));
  const labels = (entries: readonly IEntry[]): string[][] => rowsOf(entries).map(row => row.map(({ label }) => label));
  assert.deepEqual(labels([found, ...clean]), [['4'], ['3', '2', '1'], ['found']]);
  assert.deepEqual(labels([...clean.slice(0, 2), found]), [['found'], ['2'], ['1']]);
});

test('errors, warnings and notes are counted apart', async () => {
  const found = await entry('found', 'f', data('f', A, [{ line: 1, ops: [1, 0] }], 1));
  assert.equal(countsInWords('en', countsOf([found, found])), '2 errors');
  assert.equal(
    countsInWords('en', [
      ['warning', 1],
      ['note', 1200]
    ]),
    '1 warning, 1,200 notes'
  );
});

test('a report that is displayed below another cell is no other trace', async () => {
  const own = { ...(await entry('own', 'a', data('a', A, [{ line: 1, ops: [1, 0] }]))) };
  const at = (each: IEntry, cell: string): IEntry => ({
    ...each,
    key: `${each.key} ${cell}`,
    cell,
    outline: { ...each.outline, recorded: 'now' }
  });
  assert.deepEqual(
    onePerTrace([at(own, 'shown'), at(own, 'a')]).map(({ cell }) => cell),
    ['a']
  );
});

test('the card of a line says that what it did on the CPU was no part of the work on a device', async () => {
  const [stripe] =
    stripesOf([await entry('In[7]', 'a', data('a', A, [{ line: 1, ops: [1, 1] }]))]).get('a')?.stripes ?? [];
  const page = openPage('en');
  const isSaid = (shown: IStripe): boolean =>
    wordsIn(stripeCard(page, shown, false))
      .join(' ')
      .includes('On cpu: nothing');
  assert.equal(isSaid(stripe), true);
  assert.equal(isSaid({ ...stripe, cpuCompute: 1 }), false);
  assert.equal(isSaid({ ...stripe, devices: stripe.devices.slice(1) }), false);
});

test('an error is over when its cell has run again: no count, no mark and no stripe; a warning is not', async () => {
  const failed = await entry('In[7]', 'a', data('a', A, [{ line: 1, ops: [1, 0] }], 1));
  const other = await entry('In[8]', 'b', data('b', A, [{ line: 1, ops: [1, 0] }]));
  const running = withRunSince(
    [failed, other],
    new Map([
      ['a', null],
      ['b', 9]
    ])
  );
  assert.deepEqual(latest(running), [failed, other]);
  const later = withRunSince(
    running,
    new Map([
      ['a', 9],
      ['b', 9]
    ])
  );
  assert.deepEqual(latest(later), [other]);
  assert.deepEqual(
    split(later).past.map(({ label }) => label),
    ['In[7]']
  );
  assert.deepEqual(stripesOf(later).get('a'), { stripes: [], marks: [] });
  assert.equal(stripesOf(later).get('b')?.stripes.length, 1);
});
