/**
 * A finding's fix as it is tried: its buttons, what came, and what was refused.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BEGINNING, type IFixShown } from '../src/model/fixing';
import type { IFixing } from '../src/model/messages';
import { NOWHERE } from '../src/model/sidebar';
import { mountFindings } from '../src/view/findings';
import { Selection, type ITrials } from '../src/view/selection';
import { mountSidebar } from '../src/view/sidebar/sidebar';
import { NO_ACTIONS, openPage, wordsIn } from './page';
import { traceOf } from './traces';

const HUNK = { cell: 'b', file: 'two', line: 1, before: 'net(x)', after: 'net(x.to(d))' };
const BUG = { cell: 'b', line: 1, message: '`x` is on cpu.', help: 'move it', hunks: [HUNK] };
const REFUSED = [{ help: 'Move `y`', why: 'with this change line 40 raises KeyError: 3' }];
const FIXING: IFixing = { ...BEGINNING, cells: ['a', 'b'] };
const HELD: IFixing = {
  ...FIXING,
  state: 'tried',
  closing: 'Tried: the error is gone. Next In[2] fails.',
  bugs: [{ ...BUG, refused: REFUSED }],
  changed: [{ cell: 'b', before: 'net(x)', after: 'net(x.to(d))' }]
};

function shown(fixing: IFixing, changes: Partial<IFixShown> = {}): IFixShown {
  const labels = { a: 'In[4]', b: 'In[5]' };
  return { fixing, labels, tried: { recorded: '', finding: 0 }, since: Date.now(), applied: 'no', ...changes };
}

/** All that a finding says while its fix is tried. */
async function said(trial: IFixShown | null, inserts = false, grade = 'not tried'): Promise<string> {
  const edit = { file: 'two', cell: 2, line: 1, before: 'net(x)', after: 'net(x.to(d))', grade };
  const finding = { rule: 'device-mismatch', severity: 'error', site: 0, op: -1, help: 'move it', edits: [edit] };
  const trace = await traceOf({ sites: [{ file: 'two', line: 1, cell: 2 }], findings: [finding] });
  const nothing = (): undefined => undefined;
  const does = { keepInserting: nothing, begin: nothing, cancel: nothing, apply: nothing, undo: nothing };
  const trials: ITrials = { isPossible: () => true, of: () => trial, inserts, ...does };
  const page = openPage('en');
  const repairs = { of: () => null, subscribe: () => nothing };
  mountFindings(page, trace, new Selection(trace, { insert: nothing, repairs, trials }));
  return wordsIn(page).join('|');
}

for (const [what, trial, inserts, expected, never] of [
  ['nobody tried says so on its button', null, false, ['|Try|', '|Insert untried|'], ['|Insert|']],
  ['the reader has put in what holds is tried and inserted', null, true, ['|Try and insert|'], ['|Try|']],
  [
    'is tried can be cancelled',
    shown({ ...FIXING, cell: 'b' }),
    false,
    ['|Cancel|', 'Trying this fix: In[5] runs.'],
    []
  ],
  [
    'held is offered',
    shown(HELD),
    false,
    ['✓ |Tried: the error is gone. Next In[5] fails.', '|Insert|', 'Next time insert'],
    ['untried']
  ],
  [
    'holds after others were refused says what happened with these',
    shown(HELD),
    false,
    ['✗ |Move |', '|y|: with this change line 40 raises KeyError: 3'],
    []
  ],
  [
    'is proven has one tick',
    shown({ ...HELD, state: 'proven', closing: '✓ Proven: it ran.' }),
    false,
    ['|✓ Proven'],
    ['✓ |✓']
  ],
  ['is put in can be taken out', shown(HELD, { applied: 'applied' }), false, ['|✓ Inserted|', '|Undo|'], []],
  [
    'does not hold says why',
    shown({ ...FIXING, state: 'left', closing: 'No change of 2 held.', left: { ...BUG, refused: REFUSED } }),
    false,
    ['✗ |No change of 2 held.', 'KeyError: 3', '|Insert untried|', '|Try|'],
    ['Next time']
  ]
] as const) {
  test(`a fix that ${what}`, async () => {
    const text = await said(trial, inserts);
    assert.deepEqual(
      expected.filter(each => !text.includes(each)),
      [],
      text
    );
    assert.deepEqual(
      never.filter(each => text.includes(each)),
      [],
      text
    );
  });
}

test('a report offers to fix the notebook as soon as the notebook is there', async () => {
  const finding = { rule: 'device-mismatch', severity: 'error', site: -1, op: -1, help: 'move it' };
  const trace = await traceOf({ findings: [finding] });
  const nothing = (): undefined => undefined;
  const does = { keepInserting: nothing, begin: nothing, cancel: nothing, apply: nothing, undo: nothing };
  let [isThere, tell] = [false, nothing as () => void];
  const trials: ITrials = { isPossible: () => isThere, of: () => null, inserts: false, ...does };
  const subscribe = (listener: () => void) => {
    tell = listener;
    return nothing;
  };
  const page = openPage('en');
  const host = { repairs: { of: () => null, subscribe }, trials, fixNotebook: nothing };
  mountFindings(page, trace, new Selection(trace, host));
  const offer = page.querySelector<HTMLElement>('.dt-fix-all');
  assert.equal(offer?.hidden, true);
  isThere = true;
  tell();
  assert.equal(offer.hidden, false);
});

test('while the notebook is fixed the panel says how long a cell took, what is below, and offers what it has', () => {
  const page = openPage('en');
  const fixing = { ...FIXING, round: 2, cell: 'a', expected: 12, below: 3, changed: HELD.changed, bugs: HELD.bugs };
  const fix = shown(fixing, { tried: null });
  mountSidebar(page, NO_ACTIONS).update({ ...NOWHERE, name: '1', link: 'connected', hasCells: true, fix });
  const text = wordsIn(page).join('|');
  const status = 'Round 2: In[4] runs. It took 12 s when it ran last. 3 cells are left below it.';
  assert.deepEqual(
    [status, '|Apply what it has|', '|Cancel|', 'KeyError: 3'].filter(each => !text.includes(each)),
    [],
    text
  );
});
