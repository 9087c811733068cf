import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellLabels, difference, have, renumbered, type IFixShown } from '../src/model/fixing';

const CHANGED = [
  { cell: 'a', before: 'x = 1', after: 'x = 2' },
  { cell: 'b', before: 'y', after: 'y\nz' }
];

test('a fix fits a notebook whose changed cells have the text that was fixed', () => {
  const cells = [
    { cell: 'c', source: 'anything' },
    { cell: 'b', source: 'y' },
    { cell: 'a', source: 'x = 1' }
  ];
  assert.ok(have('before', CHANGED, cells));
  assert.ok(!have('after', CHANGED, cells));
  assert.ok(!have('before', CHANGED, [{ cell: 'a', source: 'x = 1' }]), 'a cell that is gone');
  assert.ok(!have('before', CHANGED, [{ cell: 'b', source: 'y ' }, ...cells.slice(2)]), 'a cell that was edited');
  assert.ok(!have('before', [], cells), 'nothing to change');
});

test('a cell that a bug speaks of has the number that it has now, not that of the kernel that was fixed', () => {
  const fixing = { cells: ['a', 'b'] } as unknown as IFixShown['fixing'];
  const labels = { a: 'In[10]', b: 'cell 2' };
  const text = renumbered('`x` is used at In[1] line 3, made in In[2]; In[3] is none', {
    fixing,
    labels,
    applied: 'no',
    tried: null,
    since: 0
  });
  assert.equal(text, '`x` is used at In[10] line 3, made in cell 2; In[3] is none');
});

test('a cell without a number is counted from the last one above that has one', () => {
  const labels = (...counts: Array<number | null>): string[] =>
    Object.values(
      cellLabels(
        counts.map((count, i) => ({ id: `c${i}`, count })),
        'en'
      )
    );
  assert.deepEqual(labels(13, null, null), ['In[13]', 'cell 1 below In[13]', 'cell 2 below In[13]']);
  assert.deepEqual(labels(null, null), ['cell 1', 'cell 2']);
});

test('what a fix replaces is the least that makes one text the other', () => {
  const texts = ['', 'a', 'aa', 'net(x)', 'net(x.to(device))', 'a\nb\nc', 'a\nc', 'a\nb\nb\nc'];
  for (const before of texts) {
    for (const after of texts) {
      const { from, to, insert } = difference(before, after);
      assert.equal(before.slice(0, from) + insert + before.slice(to), after);
    }
  }
  assert.deepEqual(difference('net(x)', 'net(x.to(device))'), { from: 5, to: 5, insert: '.to(device)' });
});
