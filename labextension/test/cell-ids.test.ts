import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCellIds } from '../src/model/cell-ids';
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
