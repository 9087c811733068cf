import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerEnd, tokenize } from '../src/layout/python';
import { regionsOf } from '../src/layout/regions';
import { sourceBlocks } from '../src/layout/source';
import { traceOf } from './traces';

test('a line adds up what its sites did, by device', async () => {
  const trace = await traceOf({
    sources: [{ file: 'a.py', text: 'x = 1\ny = f(x).to(d)\n', line: 10 }],
    sites: [
      { file: 'a.py', line: 11 },
      { file: 'a.py', line: 11, column: 4 },
      { file: 'b.py', line: 11 }
    ],
    ledger: [
      { site: 0, ops: [1, 2], h2d: 1, bytes: 8 },
      { site: 1, ops: [0, 5], syncs: 3 },
      { site: 2, ops: [100, 0] }
    ]
  });
  const [{ lines, ops }] = sourceBlocks(trace);
  assert.equal(ops, 8);
  assert.equal(lines[0].cost, null);
  const { cost, number, sites } = lines[1];
  assert.deepEqual([number, [...(cost?.ops ?? [])], cost?.h2d, cost?.syncs, cost?.bytes], [11, [1, 7, 0], 1, 3, 8]);
  assert.deepEqual(sites, [1, 0]);
});

test('the line of the magic is shown as it was written, and no other comment is changed', async () => {
  const shown = async (text: string, cell = 7): Promise<string[]> => {
    const [{ lines }] = sourceBlocks(await traceOf({ sources: [{ file: 'c', text, line: 1, cell }] }));
    return lines.map(line => line.text);
  };
  assert.deepEqual(await shown('# why\n\n# %%devtrace fit\nx = 1'), ['# why', '', '%%devtrace fit', 'x = 1']);
  assert.deepEqual(await shown('x = 1\n# %%devtrace'), ['x = 1', '# %%devtrace']);
  assert.deepEqual(await shown('# %%devtrace', -1), ['# %%devtrace']);
  assert.deepEqual(await shown('# only\n'), ['# only']);
});

test('the exact span of a finding is marked: columns count bytes, letters need not be one', async () => {
  const text = 'ä🙂 = model.head(x)';
  const begin = new TextEncoder().encode('ä🙂 = ').length;
  const end = new TextEncoder().encode('ä🙂 = model.head').length;
  const trace = await traceOf({
    sources: [{ file: 'a', text, line: 1 }],
    sites: [{ file: 'a', line: 1, end_line: 1, column: begin, end_column: end }],
    findings: [{ rule: 'r', severity: 'error', cause: '', message: '', help: '', site: 0 }]
  });
  const [mark] = sourceBlocks(trace)[0].lines[0].marks;
  assert.equal(text.slice(mark.begin, mark.end), 'model.head');
});

test('a span that goes on in later lines is marked to the end of its first', async () => {
  const trace = await traceOf({
    sources: [{ file: 'a', text: 'y = f(\n  x)', line: 1 }],
    sites: [{ file: 'a', line: 1, end_line: 2, column: 4, end_column: 4 }],
    findings: [{ rule: 'r', severity: 'warning', cause: '', message: '', help: '', site: 0 }]
  });
  const [mark] = sourceBlocks(trace)[0].lines[0].marks;
  assert.deepEqual([mark.begin, mark.end], [4, 6]);
});

test('the source with the error comes first, and says where the tensor was born and moved', async () => {
  const trace = await traceOf({
    sources: [
      { file: 'a', text: 'busy', line: 1, cell: 1 },
      { file: 'b', text: 'born\nmoved\nused', line: 1, cell: 2 }
    ],
    sites: [{ file: 'a', line: 1, cell: 1 }, ...[1, 2, 3].map(line => ({ file: 'b', line, cell: 2 }))],
    ledger: [{ site: 0, ops: [50] }],
    findings: [
      { rule: 'r', severity: 'error', cause: '', message: '', help: '', site: 3, culprit: { born: 1, moved: 2 } }
    ]
  });
  const [first, second] = sourceBlocks(trace);
  assert.deepEqual([first.cell, second.cell], [2, 1]);
  assert.deepEqual(
    first.lines.map(({ marks }) => marks.map(({ kind }) => kind)),
    [['born'], ['moved'], ['error']]
  );
});

test('every line is in one region, and touched ones are shown', () => {
  for (const [count, touched] of [
    [10, []],
    [500, [3, 250, 255, 499]],
    [500, [250]],
    [41, [0, 40]]
  ] as const) {
    const regions = regionsOf(count, touched);
    assert.equal(regions[0].from, 0);
    regions.forEach((region, i) => {
      assert.equal(region.to, regions[i + 1]?.from ?? count);
    });
    for (const line of touched) {
      assert(regions.find(({ from, to }) => from <= line && line < to)?.shown);
    }
  }
});

test('a long source opens around what was touched', () => {
  assert.deepEqual(regionsOf(500, [250]), [
    { from: 0, to: 246, shown: false },
    { from: 246, to: 255, shown: true },
    { from: 255, to: 500, shown: false }
  ]);
});

function kinds(...lines: string[]): string[][] {
  return tokenize(lines).map((tokens, i) =>
    tokens.map(({ kind, begin, end }) => `${kind}:${lines[i].slice(begin, end)}`)
  );
}

test('keywords, texts, numbers, comments and magics are told apart', () => {
  assert.deepEqual(kinds('%%devtrace on', 'for i in range(12): # why', 's = rb"a\\"#" + f(x1)'), [
    ['magic:%%devtrace on'],
    ['keyword:for', 'keyword:in', 'digits:12', 'comment:# why'],
    ['quoted:rb"a\\"#"']
  ]);
});

test('a text of several lines goes on until its end', () => {
  assert.deepEqual(kinds('"""a', 'if #', 'b""" if 1'), [
    ['quoted:"""a'],
    ['quoted:if #'],
    ['quoted:b"""', 'keyword:if', 'digits:1']
  ]);
});

test('a line whose ops ran under autocast has the dtype of the region', async () => {
  const trace = await traceOf({
    sources: [{ file: 'a', text: 'with cast():\n    f()\ng()', line: 1 }],
    sites: [
      { file: 'a', line: 2 },
      { file: 'a', line: 3 }
    ],
    ops: [0, 1].map(site => ({ site, start: site, device: 0 })),
    autocasts: [{ thread: 0, device: 'cpu', dtype: 'float16', begin: 0, end: 1, enabled: 1 }]
  });
  assert.deepEqual(
    sourceBlocks(trace)[0].lines.map(({ autocast }) => autocast),
    ['', 'float16', '']
  );
});

test('of a statement with a body the header ends at its colon', () => {
  const end = (code: string): string => code.slice(0, headerEnd(code));
  assert.equal(end('for x in loader:  # batches\n    step(x)'), 'for x in loader:');
  assert.equal(end('for x in f(lambda: 3, {1: 2}, "a:b"):\n    y'), 'for x in f(lambda: 3, {1: 2}, "a:b"):');
  assert.equal(end('with a(\n    1,  # not: here\n):\n    pass'), 'with a(\n    1,  # not: here\n):');
  assert.equal(end('async for x in y:\n  z'), 'async for x in y:');
  assert.equal(end('for x in y: z()'), '');
  assert.equal(end('format(\n  x)'), '');
});
