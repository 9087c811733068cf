import assert from 'node:assert/strict';
import { test } from 'node:test';
import { repairedIn, repairsOf, type ICell, type IRepair } from '../src/model/repairs';
import type { JsonObject } from '../src/model/findings';
import type { IEntry } from '../src/model/entries';
import { traceOf } from './traces';

const HEAD = 'model.head = Linear(8, 2)';
const FIXED = `${HEAD}\nmodel.head.to(device)`;
const TRAIN = 'model(x)';

/** In[9] makes the head, In[10] moves it, In[12] fails with it. */
const SITES = [
  { file: 'nine', line: 1, end_line: 1, text: HEAD, cell: 9, cell_id: 'a' },
  { file: 'twelve', line: 1, end_line: 1, text: TRAIN, cell: 12, cell_id: 'b' },
  { file: 'ten', line: 1, end_line: 1, text: 'model.to(device)', cell: 10, cell_id: 'c' }
];
const EDIT = { file: 'nine', cell: 9, line: 1, before: '', after: 'model.head.to(device)' };
const FINDING = { rule: 'device-mismatch', severity: 'error', site: 1, op: -1, edits: [EDIT] };

async function entry(label: string, findings: readonly JsonObject[], source = HEAD, file = false): Promise<IEntry> {
  const sources = [
    { file: 'nine', text: source, line: 1, cell: file ? -1 : 9, cell_id: file ? '' : 'a' },
    { file: 'twelve', text: `${TRAIN}\n`, line: 1, cell: 12, cell_id: 'b' },
    { file: 'ten', text: 'model.to(device)', line: 1, cell: 10, cell_id: 'c' }
  ];
  const outline = await traceOf({ sites: SITES, sources, findings });
  const rest = { seconds: 0, ops: 0, number: 1, isEarlier: false };
  return { key: label, label, cell: 'b', outline, ...rest };
}

function cell(id: string, text: string, count: number, changes: Partial<ICell> = {}): ICell {
  return { id, text, count, isDirty: false, hasFailed: false, ...changes };
}

function repaired(entries: readonly IEntry[], ...cells: readonly ICell[]): Array<IRepair | null> {
  const around = { entries, cells: new Map(cells.map(each => [each.id, each])), inFiles: new Set<string>() };
  const repairs = repairsOf(around);
  return entries.map(({ key }) => repairs.get(key)?.get(0) ?? null);
}

const EDITED: Partial<ICell> = { isDirty: true };
const FROM_THERE = 'In[9] has the fix: run it and the cells below again, as far as In[12].';

test('a fix that nobody has put in has nothing to say', async () => {
  assert.deepEqual(repaired([await entry('In[12]', [FINDING])], cell('a', HEAD, 9), cell('b', TRAIN, 12)), [null]);
});

test('after Insert the finding says which cell has the fix, and what is to run', async () => {
  const [repair] = repaired([await entry('In[12]', [FINDING])], cell('a', FIXED, 9, EDITED), cell('b', TRAIN, 12));
  assert.deepEqual(repair, { state: 'inserted', sentence: FROM_THERE });
});

test('a fix in the cell that failed wants that cell alone to run', async () => {
  const edit = { ...EDIT, file: 'twelve', cell: 12, before: TRAIN, after: 'model(x.to(device))' };
  const run = cell('b', 'model(x.to(device))', 12, EDITED);
  const [repair] = repaired([await entry('In[12]', [{ ...FINDING, edits: [edit] }])], cell('a', HEAD, 9), run);
  assert.equal(repair?.sentence, 'In[12] has the fix: run it again.');
});

test('when only the training cell ran again, its fix is still to be run', async () => {
  const entries = [await entry('In[12]', [FINDING]), await entry('In[13]', [FINDING])];
  const repairs = repaired(entries, cell('a', FIXED, 9, EDITED), cell('b', TRAIN, 13));
  assert.deepEqual(repairs[1], {
    state: 'inserted',
    sentence: 'In[9] has the fix: run it and the cells below again, as far as In[13].'
  });
});

test('in a page that was loaded since, a cell whose number is still that of the trace has not run', async () => {
  const [repair] = repaired([await entry('In[12]', [FINDING])], cell('a', FIXED, 9), cell('b', TRAIN, 12));
  assert.equal(repair?.sentence, FROM_THERE);
});

test('once the edited cell ran, the cells below are to run again', async () => {
  const [repair] = repaired([await entry('In[12]', [FINDING])], cell('a', FIXED, 13), cell('b', TRAIN, 12));
  assert.deepEqual(repair, {
    state: 'inserted',
    sentence: 'In[13] has the fix: run the cells below again, as far as In[12].'
  });
});

test('a fix has run when its cells and the one that was traced did, and the finding did not come again', async () => {
  const cells = [cell('a', FIXED, 13), cell('b', TRAIN, 14)];
  const first = await entry('In[12]', [FINDING]);
  const [ran] = repaired([first, await entry('In[14]', [])], ...cells);
  assert.deepEqual(ran, { state: 'ran', sentence: 'In[14] ran with this fix.' });
  const [again] = repaired([first, await entry('In[14]', [FINDING])], ...cells);
  assert.equal(again?.state, 'inserted');
});

test('a run that nothing traced counts too, unless it failed', async () => {
  const first = [await entry('In[12]', [FINDING])];
  const fixed = cell('a', FIXED, 13);
  assert.equal(repaired(first, fixed, cell('b', TRAIN, 14))[0]?.state, 'ran');
  assert.equal(repaired(first, fixed, cell('b', TRAIN, 14, { hasFailed: true }))[0]?.state, 'inserted');
});

test('one undo makes the finding as it was', async () => {
  assert.deepEqual(repaired([await entry('In[12]', [FINDING])], cell('a', HEAD, 9), cell('b', TRAIN, 12)), [null]);
});

test('an edit of a file is to be saved, and its kernel restarted', async () => {
  const finding = { ...FINDING, edits: [{ ...EDIT, cell: -1 }] };
  const entries = [await entry('In[12]', [finding], HEAD, true)];
  const inFiles = new Set([JSON.stringify(['nine', 1, '', 'model.head.to(device)'])]);
  const repairs = repairsOf({ entries, cells: new Map([['b', cell('b', TRAIN, 12)]]), inFiles });
  const repair = repairs.get('In[12]')?.get(0);
  assert.equal(repair?.sentence, 'nine was edited: save, restart the kernel and run all as far as In[12].');
  assert.deepEqual(repairedIn(repairs), []);
});
