import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildBoxes } from '../src/layout/boxes';
import { commonIndent, firstLine, moreLabel, plainText } from '../src/layout/finding-text';
import { moduleTree } from '../src/layout/modules';
import { tokenize } from '../src/layout/python';
import { segmentsOf } from '../src/layout/segments';
import { clipped } from '../src/layout/units';
import { addCounts, countOps, countsBySite } from '../src/model/ledger';
import { readTrace } from '../src/model/read';
import { waitingOps } from '../src/model/syncs';
import { Disposables } from '../src/view/disposables';
import type { Language } from '../src/model/words/catalogue';
import { newId } from '../src/view/dom';
import { boxText } from '../src/view/module-box';
import { steppedTo } from '../src/view/rows';
import { opsInTurn, traceOf } from './traces';

test('keys step through rows, to both ends, and past them', () => {
  assert.deepEqual(
    ['ArrowDown', 'ArrowUp', 'Home', 'End', 'x', 'constructor'].map(key => steppedTo(key, 0, 5)),
    [1, -1, 0, 4, null, null]
  );
  assert.equal(steppedTo('PageDown', 3, 100, { PageDown: 15 }), 18);
});

test('a long text is cut and says how long it was', () => {
  const english = (): Language => 'en';
  assert.equal(clipped('abc', english), 'abc');
  assert.equal(clipped('x'.repeat(2500), english), `${'x'.repeat(2000)}… (2,500 characters)`);
});

test('ids of two reports differ', () => {
  assert.equal(new Set(Array.from({ length: 100 }, newId)).size, 100);
});

test('disposables end once, the last first, and at once after that', () => {
  const disposables = new Disposables();
  const ended: string[] = [];
  const target = new EventTarget();
  disposables.listen(target, 'click', () => ended.push('heard'));
  disposables.add(() => ended.push('first'));
  disposables.add(() => ended.push('second'));
  target.dispatchEvent(new Event('click'));
  disposables.dispose();
  disposables.dispose();
  target.dispatchEvent(new Event('click'));
  disposables.add(() => ended.push('late'));
  assert.deepEqual(ended, ['heard', 'second', 'first', 'late']);
  assert(disposables.isDisposed);
});

test('a box says its name, type, ops and time, and how many it stands for', async () => {
  const trace = await traceOf({
    ops: opsInTurn(4, op => ({ call: op < 2 ? 1 : 2 })),
    modules: [
      { path: 'model', type: 'Model' },
      { path: 'model.h0', parent: 0, type: 'Block' },
      { path: 'model.h1', parent: 0, type: 'Block' }
    ],
    calls: [
      { module: 0, begin: 0, end: 4 },
      { module: 1, parent: 0, begin: 0, end: 2 },
      { module: 2, parent: 0, begin: 2, end: 4 }
    ]
  });
  const [model] = buildBoxes(trace, moduleTree(trace), { opened: new Map(), unfolded: new Set() });
  assert.deepEqual(boxText(trace, model), { title: 'model', detail: 'Model · 4 ops · 40 ns' });
  assert.deepEqual(boxText(trace, model.children[0]), { title: 'h0…h1 ×2', detail: 'Block · 4 ops · 40 ns' });
});

test('the ledger is added up by site, and sites by line', async () => {
  const trace = await traceOf({
    sites: [{ line: 1 }, { line: 1 }],
    ledger: [
      { site: 0, ops: [1, 2], h2d: 1, cpu_compute: 1 },
      { site: 0, ops: [1, 0], syncs: 2, bytes: 8 },
      { site: 1, ops: [0, 0, 4], d2h: 3 }
    ]
  });
  const bySite = countsBySite(trace);
  const { ops, ...others } = bySite.get(0) ?? assert.fail();
  assert.deepEqual([[...ops], others], [[2, 2, 0], { h2d: 1, d2h: 0, d2d: 0, syncs: 2, cpuCompute: 1, bytes: 8 }]);
  const line = addCounts([...bySite.values()]);
  assert.deepEqual([countOps(line), line?.d2h, line?.syncs], [8, 3, 2]);
  assert.deepEqual([addCounts([]), countOps(null)], [null, 0]);
});

test('only ops that read a value of a device wait', async () => {
  const kinds = ['sync', 'compute', 'sync', 'sync'];
  const devices = [0, 1, 1, -1];
  const trace = await traceOf({ ops: opsInTurn(4, op => ({ kind: kinds[op], device: devices[op] })) });
  assert.deepEqual(waitingOps(trace), [2]);
});

test('a finding is copied message first, then its line, op and devices, and what it has none of is left out', async () => {
  const finding = {
    rule: 'r',
    severity: 'error',
    cause: '',
    message: '`x` is on cpu.',
    help: '',
    devices: ['cuda:0', 'cpu']
  };
  const trace = await traceOf({
    ops: opsInTurn(1),
    sites: [{ file: 'a/b.py', line: 6 }],
    findings: [
      { ...finding, site: 0, op: 0, help: 'move it' },
      { ...finding, site: -1, op: -1, devices: [] },
      ...['tried', 'safe'].map(grade => ({ ...finding, help: 'move it', edits: [{ grade }] }))
    ]
  });
  const [whole, bare, tried, old] = (trace.findings ?? []).map(each => plainText(trace, each, '✗'));
  assert.equal(whole, '✗ `x` is on cpu.\n  b.py line 6   aten.op0   cuda:0 + cpu\n  Fix  move it');
  assert.equal(bare, '✗ `x` is on cpu.\n  r');
  assert.deepEqual(
    [tried, old].map(each => each.includes('Fix  move it (not tried)')),
    [false, true]
  );
});

const GOLDEN = 'tests/golden';

test('a finding is copied with the lines of the text form, and with its edits', async () => {
  const trace = await readTrace(readFileSync(`${GOLDEN}/story.devtrace`, 'utf8'));
  const [finding] = trace.findings ?? assert.fail();
  const words = (text: string): string[] => text.split(/\s+/).filter(word => word !== '');
  const python = readFileSync(`${GOLDEN}/story-report.txt`, 'utf8').split('\n\n')[0];
  const edits = [
    'In[5] line 1',
    '- model.out_head = nn.Linear(768, 2)',
    '+ model.out_head = nn.Linear(768, 2).to(device)'
  ];
  assert.deepEqual(words(plainText(trace, finding, '✗')), words([python, ...edits].join(' ')));
});

test('the button for more findings says how many there are, and whether all are notes', async () => {
  const severities = ['note', 'note', 'error'];
  const findings = severities.map(severity => ({ rule: 'r', severity, cause: '', message: '', help: '' }));
  const left = (await traceOf({ findings })).findings ?? [];
  assert.deepEqual(
    [left.slice(0, 1), left.slice(0, 2), left].map(each => moreLabel('en', each)),
    ['Show 1 note', 'Show 2 notes', 'Show 3 more']
  );
});

test('code of several lines is shown by its first, and edits without their common indent', () => {
  assert.equal(firstLine('f(\n  x)'), 'f( …');
  assert.equal(firstLine('f(x)'), 'f(x)');
  assert.equal(commonIndent(['    a\n\n      b', '    c']), 4);
});

test('a line is cut where tokens and marks begin and end, and pieces make up the whole line', () => {
  const text = "x = f('a')  # why";
  const marks = [{ begin: 4, end: 8, kind: 'error', finding: 0 }] as const;
  const segments = segmentsOf(text, tokenize([text])[0], marks);
  assert.equal(segments.map(segment => segment.text).join(''), text);
  assert.deepEqual(
    segments.map(segment => [segment.text, segment.token, segment.mark]),
    [
      ['x = ', null, null],
      ['f(', null, 'error'],
      ["'a", 'quoted', 'error'],
      ["'", 'quoted', null],
      [')  ', null, null],
      ['# why', 'comment', null]
    ]
  );
  assert.deepEqual(segmentsOf('x = ', tokenize([text])[0], marks).length, 1);
});
