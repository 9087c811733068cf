import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFixed, fixedIn, repairsOf, type ICell, type IRepair } from '../src/model/repairs';
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
  const rest = { seconds: 0, ops: 0, counting: new Set<number>(), number: 1, isEarlier: false };
  return { key: label, label, cell: 'b', outline, ...rest };
}

function cell(id: string, text: string, count: number, changes: Partial<ICell> = {}): ICell {
  return { id, text, count, isDirty: false, editedAt: null, hasFailed: false, ...changes };
}

function repaired(entries: readonly IEntry[], ...cells: readonly ICell[]): Array<IRepair | null> {
  const around = { entries, cells: new Map(cells.map(each => [each.id, each])), inFiles: new Set<string>() };
  const repairs = repairsOf(around);
  return entries.map(({ key }) => repairs.get(key)?.get(0) ?? null);
}

const EDITED: Partial<ICell> = { isDirty: true, editedAt: 12 };

test('a fix that nobody has put in has nothing to say', async () => {
  assert.deepEqual(repaired([await entry('In[12]', [FINDING])], cell('a', HEAD, 9), cell('b', TRAIN, 12)), [null]);
});

test('after Insert the finding says which cell was edited, and what is to run', async () => {
  const [repair] = repaired([await entry('In[12]', [FINDING])], cell('a', FIXED, 9, EDITED), cell('b', TRAIN, 12));
  assert.deepEqual(repair, { state: 'inserted', sentence: 'In[9] was edited: run it, then In[12] again.' });
});

test('the cells between in which the tensor was made or moved are to run too', async () => {
  const finding = { ...FINDING, culprit: { name: 'model.head', born: 0, moved: 2, chain: [] } };
  const cells = [cell('a', FIXED, 9, EDITED), cell('b', TRAIN, 12), cell('c', 'model.to(device)', 10)];
  const [repair] = repaired([await entry('In[12]', [finding])], ...cells);
  assert.equal(repair?.sentence, 'In[9] was edited: run it, then In[10] and In[12] again.');
});

test('a fix of a line that the tensor came by does not want it made again', async () => {
  const cells = [cell('a', FIXED, 9, EDITED), cell('b', TRAIN, 12), cell('c', 'model.to(device)', 10)];
  const culprit = { name: 'y', born: 2, moved: -1, chain: [0] };
  const [onItsWay] = repaired([await entry('In[12]', [{ ...FINDING, culprit }])], ...cells);
  assert.equal(onItsWay?.sentence, 'In[9] was edited: run it, then In[12] again.');
  const later = { ...culprit, chain: [0, 2] };
  const [beforeAnother] = repaired([await entry('In[12]', [{ ...FINDING, culprit: later }])], ...cells);
  assert.equal(beforeAnother?.sentence, 'In[9] was edited: run it, then In[10] and In[12] again.');
});

test('a fix in a class wants the cells below to run as well, as its objects stay as they were', async () => {
  const source = 'class Net:\n    def __init__(self):\n        self.mask = ones(3)';
  const finding = {
    ...FINDING,
    edits: [{ ...EDIT, line: 3, before: '        self.mask = ones(3)', after: '        x' }]
  };
  const cells = [cell('a', source.replace('self.mask = ones(3)', 'x'), 9, EDITED), cell('b', TRAIN, 12)];
  const [repair] = repaired([await entry('In[12]', [finding], source)], ...cells);
  assert.equal(repair?.sentence, 'In[9] was edited: run it and the cells below again, as far as In[12].');
});

test('when only the training cell ran again, the finding says what was edited but not run', async () => {
  const entries = [await entry('In[12]', [FINDING]), await entry('In[13]', [FINDING])];
  const repairs = repaired(entries, cell('a', FIXED, 9, EDITED), cell('b', TRAIN, 13));
  assert.deepEqual(repairs[1], {
    state: 'inserted',
    sentence: 'In[9] was edited but not run: run it, then In[13] again.'
  });
  const byHand = repaired(entries, cell('a', 'model.head = Linear(8, 2, device=d)', 9, EDITED), cell('b', TRAIN, 13));
  assert.deepEqual(byHand[1]?.state, 'edited');
});

test('in a page that was loaded since, a cell whose number is still that of the trace has not run', async () => {
  const [repair] = repaired([await entry('In[12]', [FINDING])], cell('a', FIXED, 9), cell('b', TRAIN, 12));
  assert.equal(repair?.sentence, 'In[9] was edited: run it, then In[12] again.');
});

test('once the edited cell ran, the traced one is to run again', async () => {
  const ran = cell('a', FIXED, 13, { editedAt: 12 });
  const [repair] = repaired([await entry('In[12]', [FINDING])], ran, cell('b', TRAIN, 12));
  assert.deepEqual(repair, { state: 'inserted', sentence: 'In[13] has the fix: run In[12] again.' });
});

test('a finding is fixed when its cell ran clean after the fix, and not when it came again', async () => {
  const cells = [cell('a', FIXED, 13, { editedAt: 12 }), cell('b', TRAIN, 14)];
  const [fixed] = repaired([await entry('In[12]', [FINDING]), await entry('In[14]', [])], ...cells);
  assert.deepEqual(fixed, { state: 'fixed', sentence: 'In[14] ran clean.' });
  const another = { ...FINDING, rule: 'host-conversion' };
  const [open] = repaired([await entry('In[12]', [FINDING]), await entry('In[14]', [another])], ...cells);
  assert.equal(open?.state, 'inserted');
});

test('an error is fixed when its cell ran without one, though nothing traced it', async () => {
  const fixed = cell('a', FIXED, 13, { editedAt: 12 });
  const first = [await entry('In[12]', [FINDING])];
  assert.deepEqual(repaired(first, fixed, cell('b', TRAIN, 14)), [
    { state: 'fixed', sentence: 'In[14] ran without this error.' }
  ]);
  assert.equal(repaired(first, fixed, cell('b', TRAIN, 14, { hasFailed: true }))[0]?.state, 'inserted');
  const cost = [await entry('In[12]', [{ ...FINDING, severity: 'warning' }])];
  assert.equal(
    repaired(cost, fixed, cell('b', TRAIN, 14))[0]?.sentence,
    'In[13] has the fix: run In[14] again, traced.'
  );
});

test('one undo makes the finding as it was', async () => {
  const undone = cell('a', HEAD, 9, { editedAt: 12 });
  assert.deepEqual(repaired([await entry('In[12]', [FINDING])], undone, cell('b', TRAIN, 12)), [null]);
});

test('an edit of a file is to be saved, and its kernel restarted', async () => {
  const finding = { ...FINDING, edits: [{ ...EDIT, cell: -1 }] };
  const entries = [await entry('In[12]', [finding], HEAD, true)];
  const inFiles = new Set([JSON.stringify(['nine', 1, '', 'model.head.to(device)'])]);
  const repairs = repairsOf({ entries, cells: new Map([['b', cell('b', TRAIN, 12)]]), inFiles });
  const repair = repairs.get('In[12]')?.get(0);
  assert.equal(repair?.sentence, 'nine was edited: save, restart the kernel and run all as far as In[12].');
  assert.equal(isFixed(repair), false);
  assert.deepEqual(fixedIn(repairs), []);
});
