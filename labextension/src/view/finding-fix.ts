/**
 * The fix of a finding: buttons that try it, put it in and copy it, and what became of it.
 */
import { fixOf, fixText, plainText } from '../layout/finding-text';
import { hasHeld, holds, isRunning, type IFixShown } from '../model/fixing';
import type { IFinding } from '../model/findings';
import type { IRepair } from '../model/repairs';
import { sentence, type Language } from '../model/words/catalogue';
import { severityLook } from '../paint/palette';
import { withCode, type IViewContext } from './chips';
import { button, h } from './dom';
import type { ITrials } from './selection';
import { fixStatus, hunkPreviews, refusedCandidates } from './trial';

const SIGNS: Readonly<Record<IRepair['state'], string>> = { inserted: '↻', ran: '✓' };

/** The first error is what a run of its cell comes to. */
function isFirstError({ trace }: IViewContext, finding: IFinding): boolean {
  return finding.severity === 'error' && finding === trace.findings?.[0];
}

/** The host's trials, where this finding's fix can be tried. */
function trialsOf(context: IViewContext, finding: IFinding): ITrials | null {
  const { trials } = context.selection.host;
  return trials && isFirstError(context, finding) && finding.edits.length > 0 ? trials : null;
}

/** `Try`, `Insert`, `Copy fix`, …: what can be done with a fix. */
export function fixButtons(context: IViewContext, finding: IFinding, at: number): HTMLElement {
  const { trace, selection, disposables, owner } = context;
  const { insert } = selection.host;
  const { language } = trace;
  const made = (label: 'fix.try' | 'fix.insert' | 'fix.notebook', name: string, act: () => void): HTMLButtonElement =>
    button(owner, disposables, sentence(language, label), act, { class: `dt-small ${name}` });
  const text = fixText(finding);
  const trials = trialsOf(context, finding);
  const buttons: HTMLElement[] = [];
  if (trials) {
    const tryOrCancel = (): void => {
      const trial = trials.of(at);
      if (trial && isRunning(trial)) {
        trials.cancel();
      } else {
        trials.begin(at);
      }
    };
    const attempt = made('fix.try', 'dt-try', tryOrCancel);
    attempt.title = sentence(language, 'fix.try-title');
    buttons.push(attempt);
  }
  if (insert && finding.edits.length > 0) {
    const put = made('fix.insert', 'dt-insert', () => {
      const trial = trials?.of(at);
      if (trials && trial && holds(trial)) {
        trials.apply();
      } else {
        insert(finding.edits);
      }
    });
    put.dataset['grade'] = finding.edits[0].grade;
    buttons.push(put);
  }
  if (text !== '') {
    buttons.push(copyButton(context, 'fix.copy', () => text));
  }
  const { sign } = severityLook(finding.severity, false);
  buttons.push(copyButton(context, 'fix.copy-finding', () => plainText(trace, finding, sign)));
  const { fixNotebook } = selection.host;
  if (fixNotebook && isFirstError(context, finding)) {
    buttons.push(made('fix.notebook', 'dt-fix-all', fixNotebook));
  }
  return h(owner, 'div', { class: 'dt-actions' }, ...buttons);
}

/** A finding says what became of its fix; its buttons show what was used. */
export function showFix(context: IViewContext, row: HTMLElement, finding: IFinding, at: number): void {
  const { repairs } = context.selection.host;
  const { language } = context.trace;
  const repair = repairs?.of(at) ?? null;
  const trials = trialsOf(context, finding);
  const trial = trials?.of(at) ?? null;
  const isUsed = repair !== null || (trial !== null && trial.applied !== 'no');
  const isTried = finding.edits.at(0)?.grade !== 'not tried' || (trial !== null && hasHeld(trial));
  row.dataset['repair'] = repair?.state ?? '';
  row.dataset['tried'] = String(isTried);
  const fix = fixOf(language, isTried ? { ...finding, edits: [] } : finding);
  row.querySelector('.dt-fix-line')?.replaceChildren(...withCode(row, fix));
  const line = row.querySelector<HTMLElement>('.dt-repair');
  const text = repair === null ? '' : `${SIGNS[repair.state]} ${repair.sentence}`;
  if (line && line.textContent !== text) {
    line.textContent = text;
  }
  const put = row.querySelector<HTMLButtonElement>('.dt-insert');
  if (put) {
    const label = isUsed ? 'fix.inserted' : isTried ? 'fix.insert' : 'fix.insert-untried';
    const title = isUsed ? 'fix.inserted-title' : isTried ? 'fix.insert-title' : 'edit.not-tried-title';
    put.textContent = sentence(language, label);
    put.title = sentence(language, title);
    put.classList.toggle('dt-primary', !isUsed && (isTried || !trials?.isPossible()));
  }
  const attempt = row.querySelector<HTMLButtonElement>('.dt-try');
  if (attempt && trials) {
    const begin = trials.inserts ? 'fix.try-and-insert' : 'fix.try';
    const runs = trial !== null && isRunning(trial);
    attempt.textContent = sentence(language, runs ? 'fix-all.cancel' : begin);
    attempt.classList.toggle('dt-primary', !isUsed && !isTried && !runs);
    attempt.hidden = !trials.isPossible();
  }
  const all = row.querySelector<HTMLButtonElement>('.dt-fix-all');
  if (all) {
    all.hidden = !context.selection.host.trials?.isPossible();
  }
  const slot = row.querySelector<HTMLElement>('.dt-trial');
  if (slot && trials) {
    showTrial(context, slot, finding, trials, trial);
  }
}

/** What a slot shows: the same trial is not drawn again, so that its buttons keep the focus. */
const drawn = new WeakMap<HTMLElement, IFixShown | null>();

function showTrial(
  context: IViewContext,
  slot: HTMLElement,
  finding: IFinding,
  trials: ITrials,
  trial: IFixShown | null
): void {
  if (drawn.get(slot) !== trial) {
    drawn.set(slot, trial);
    slot.replaceChildren(...(trial === null ? [] : trialParts(context, finding, trials, trial)));
  }
}

function trialParts(context: IViewContext, finding: IFinding, trials: ITrials, trial: IFixShown): HTMLElement[] {
  const { owner, trace, disposables } = context;
  const { language } = trace;
  const after: HTMLElement[] = [];
  if (trial.applied !== 'no') {
    after.push(button(owner, disposables, sentence(language, 'fix-all.undo'), trials.undo, { class: 'dt-small' }));
  }
  if (hasHeld(trial)) {
    after.push(keepInserting(context, trials, language));
  }
  const bug = trial.fixing.bugs.at(0) ?? trial.fixing.left;
  const isAnother = bug?.hunks.some(({ after }) => !finding.edits.some(edit => edit.after === after)) ?? false;
  return [
    ...(bug ? refusedCandidates(owner, bug, trial, language) : []),
    ...fixStatus(owner, trial, language),
    ...(bug && isAnother ? hunkPreviews(owner, bug, trial, language) : []),
    ...(after.length > 0 ? [h(owner, 'div', { class: 'dt-actions' }, ...after)] : [])
  ];
}

/** Who has it ticked once gets what holds without a second press, in every notebook. */
function keepInserting({ owner, disposables }: IViewContext, trials: ITrials, language: Language): HTMLElement {
  const box = h(owner, 'input', { attributes: { type: 'checkbox' } });
  box.checked = trials.inserts;
  disposables.listen(box, 'change', () => {
    trials.keepInserting(box.checked);
  });
  return h(owner, 'label', { class: 'dt-faint' }, box, ` ${sentence(language, 'trial.keep')}`);
}

function copyButton(
  { owner, trace, disposables }: IViewContext,
  label: 'fix.copy' | 'fix.copy-finding',
  text: () => string
): HTMLButtonElement {
  const { language } = trace;
  const act = (): void => void copyText(language, copy, text());
  const copy = button(owner, disposables, sentence(language, label), act, { class: 'dt-small' });
  return copy;
}

async function copyText(language: Language, copy: HTMLButtonElement, text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    copy.textContent = sentence(language, 'fix.copied');
  } catch {
    copy.textContent = sentence(language, 'fix.copy-failed');
  }
}
