import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NumberedCells, withCellIds } from '../src/model/cell-ids';
import { spanOfLine, spanOfSite } from '../src/model/source-span';
import { traceOf } from './traces';

const STORY = {
  sites: [
    { file: 'k/1.py', line: 2, cell: 3, text: 'b' },
    { file: 'k/2.py', line: 1, cell: 4, cell_id: 'known', text: 'c' },
    { file: 'train.py', line: 1, cell: -1, text: 'd' }
  ],
  sources: [
    { file: 'k/1.py', text: "get_ipython().run_line_magic('pylab', '')\nb", line: 1, cell: 3 },
    { file: 'k/2.py', text: 'c', line: 1, cell: 4, cell_id: 'known' }
  ]
};

test('a cell without an id has that of the shown cell with its number and text', async () => {
  const trace = withCellIds(await traceOf(STORY), [
    { id: 'other', count: 3, source: 'a\nx' },
    { id: 'mine', count: 3, source: '%pylab\nb' },
    { id: 'later', count: 4, source: 'c' }
  ]);
  assert.deepEqual(
    [0, 1, 2].map(site => spanOfSite(trace, site).cellId),
    ['mine', 'known', '']
  );
  assert.equal(spanOfLine(trace, 'k/1.py', 3, 2).cellId, 'mine');
});

test('a trace stays as it is where no shown cell has the number and the text', async () => {
  const trace = await traceOf(STORY);
  assert.equal(withCellIds(trace, []), trace);
  assert.equal(
    withCellIds(trace, [
      { id: 'edited', count: 3, source: 'something else' },
      { id: 'again', count: 9, source: 'b' }
    ]),
    trace
  );
});

test('a cell that ran again is still the one that had the number before', async () => {
  const cells = new NumberedCells();
  cells.note([{ id: 'mine', count: 3, source: '%pylab\nb' }]);
  const now = [{ id: 'mine', count: 9, source: '%pylab\nc' }];
  cells.note(now);
  const trace = withCellIds(await traceOf(STORY), [...now, ...cells.all]);
  assert.equal(spanOfSite(trace, 0).cellId, 'mine');
});

test('after a restart a number is that of the cell that had it last', async () => {
  const cells = new NumberedCells();
  cells.note([{ id: 'before', count: 3, source: 'b' }]);
  cells.note([{ id: 'after', count: 3, source: 'b' }]);
  assert.equal(spanOfSite(withCellIds(await traceOf(STORY), cells.all), 0).cellId, 'after');
});
