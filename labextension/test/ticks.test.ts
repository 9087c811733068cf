import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../src/model/findings';
import { readTrace } from '../src/model/read';
import { NOWHERE, type ISidebar } from '../src/model/sidebar';
import type { ITrace } from '../src/model/trace';
import { mountFindings } from '../src/view/findings';
import { Selection } from '../src/view/selection';
import { mountSidebar } from '../src/view/sidebar/sidebar';
import { NO_ACTIONS, openPage, wordsIn } from './page';
import { fileOf } from './traces';

const WARNING = { rule: 'host-sync', severity: 'warning', message: 'waits', op: -1, count: 1 };
const CLOSING = 'IndexError in In[1] line 2; no device had a part in it.';

function traced(ending: JsonObject, findings: readonly JsonObject[] = []): Promise<ITrace> {
  return readTrace({ ...fileOf({ findings }), outcome: 'ended', ...ending });
}

function shownBelowACell(trace: ITrace): string {
  const page = openPage('en');
  mountFindings(page, trace, new Selection(trace, { reveal: () => undefined, insert: () => undefined }));
  return wordsIn(page).join(' ');
}

function shownInThePanel(outline: ITrace): string {
  const entry = { key: '1', label: 'In[1]', cell: 'a', seconds: 1, ops: 5, outline, number: 1, isEarlier: false };
  const state: ISidebar = { ...NOWHERE, name: '1', link: 'connected', entries: [entry] };
  const page = openPage('en');
  mountSidebar(page, NO_ACTIONS).update(state);
  return wordsIn(page).join(' ');
}

test('a tick stands below a cell and in the panel where Python found all clear', async () => {
  const clear = await traced({ all_clear: true });
  assert(shownBelowACell(clear).includes('✓ No device problems.'));
  assert(shownInThePanel(clear).includes('✓ No errors or warnings in In[1]'));
});

test('no tick stands where it did not, nor where there is a warning', async () => {
  for (const trace of [await traced({}), await traced({ all_clear: true }, [WARNING])]) {
    assert(!shownBelowACell(trace).includes('✓'));
    assert(!shownInThePanel(trace).includes('✓'));
  }
});

test('a cell that failed of something else says so in the place of the tick', async () => {
  const failed = await traced({ outcome: 'failed: IndexError', closing: CLOSING });
  assert(shownBelowACell(failed).includes(CLOSING));
  assert(shownInThePanel(failed).includes(CLOSING));
});

test('what a line beside a finding has between backticks is code, and no backtick is seen', async () => {
  const lines = [{ label: '2.0 MiB', site: -1, remark: 'graphs that `model.preds` keeps' }];
  const trace = await traced({}, [{ ...WARNING, lines }]);
  const page = openPage('en');
  mountFindings(page, trace, new Selection(trace));
  assert.match(page.textContent, /graphs that model\.preds keeps/);
});
