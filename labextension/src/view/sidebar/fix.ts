/**
 * "Fix the notebook": its button, how far the rounds are, and then each bug with its change, what proves them, Apply and Run.
 */
import { holds, isRunning, renumbered, type IFixShown } from '../../model/fixing';
import type { IFixedBug } from '../../model/messages';
import type { ISidebar } from '../../model/sidebar';
import { listed, sentence, type Language } from '../../model/words/catalogue';
import { lineLink, withCode } from '../chips';
import { button, h } from '../dom';
import { fixStatus, hunkPreviews, refusedCandidates, type LineLink } from '../trial';
import type { FixStep, IDrawing } from './drawing';

export function drawFix({ fix, link }: ISidebar, drawing: IDrawing): void {
  const { body, language } = drawing;
  const isUsable = link === 'connected' || link === 'absent';
  if (fix === null) {
    body.append(h(body, 'p', { class: 'dt-none', text: sentence(language, 'fix-all.caution') }));
    body.append(action(drawing, 'fix-all.begin', 'begin', isUsable));
    return;
  }
  const { fixing } = fix;
  const bugs = [...fixing.bugs, ...(fixing.left ? [fixing.left] : [])];
  const list = h(body, 'ol', { class: 'dt-fix-bugs' });
  bugs.forEach(bug => list.append(drawBug(bug, bug === fixing.left, fix, drawing)));
  body.append(...fixStatus(body, fix, language), list, ...needed(fix, drawing), buttons(fix, isUsable, drawing));
}

function drawBug(bug: IFixedBug, isLeft: boolean, fix: IFixShown, drawing: IDrawing): HTMLElement {
  const { body, scope, actions, language } = drawing;
  const { labels, applied } = fix;
  const link: LineLink = (label, cell, line) => {
    const title = sentence(language, 'site.go', { site: label });
    const go = (): void => actions.goTo(cell, line);
    return cell in labels ? lineLink(body, scope, label, title, go) : h(body, 'span', { text: label });
  };
  const where = { source: labels[bug.cell] ?? '', line: String(bug.line) };
  const isOver = applied === 'clean' && !isLeft;
  const sign = isOver ? '✓' : '✗';
  const text = h(body, isOver ? 's' : 'span', {}, ...withCode(body, renumbered(bug.message, fix)));
  const row = h(body, 'li', { class: 'dt-fix-bug' }, `${sign} `, text);
  const isThere = bug.hunks.some(({ cell, line }) => cell === bug.cell && line === bug.line);
  if (bug.cell !== '' && !isThere) {
    row.append(h(body, 'div', { class: 'dt-faint' }, link(sentence(language, 'edit.line', where), bug.cell, bug.line)));
  }
  row.append(...refusedCandidates(body, bug, fix, language), ...hunkPreviews(body, bug, fix, language, link));
  const isInParts = bug.hunks.length > 1; // Then it says what each of them is for.
  if ((isLeft || isInParts) && bug.help !== '') {
    row.append(h(body, 'p', {}, `${sentence(language, 'label.fix')} `, ...withCode(body, renumbered(bug.help, fix))));
  }
  return row;
}

function buttons(fix: IFixShown, isUsable: boolean, drawing: IDrawing): HTMLElement {
  const { body, language } = drawing;
  const { fixing, applied } = fix;
  const row = h(body, 'div', { class: 'dt-fix-buttons' });
  if (isRunning(fix)) {
    row.append(...(holds(fix) ? [action(drawing, 'fix-all.apply-now', 'apply', true, true)] : []));
    row.append(action(drawing, 'fix-all.cancel', 'cancel', true));
    return row;
  }
  const names = named(fixing.run, fix, language);
  if (holds(fix)) {
    row.append(action(drawing, 'fix-all.apply', 'apply', true, true));
  } else if (applied === 'applied' || applied === 'failed') {
    const run = action(drawing, 'fix-all.apply', 'run', isUsable, true);
    run.textContent = sentence(language, fixing.needed.length > 0 ? 'fix-all.run-needed' : 'fix-all.run', { names });
    row.append(run);
  } else if (applied !== 'no') {
    const key = applied === 'clean' ? 'fix-all.clean' : 'fix-all.running';
    row.append(h(body, 'p', { class: 'dt-fix-after', role: 'status', text: sentence(language, key, { names }) }));
  }
  if (applied !== 'no' && applied !== 'running') {
    row.append(action(drawing, 'fix-all.undo', 'undo', true));
  }
  row.append(action(drawing, 'fix-all.again', 'begin', isUsable && applied !== 'running'));
  return row;
}

/** `The changed cells need cell 1 and cell 2 …`: why cells run that no fix has changed. */
function needed(fix: IFixShown, { body, language }: IDrawing): HTMLElement[] {
  const { length: count } = fix.fixing.needed;
  if (count === 0 || fix.applied === 'no' || fix.applied === 'clean') {
    return [];
  }
  const names = named(fix.fixing.needed, fix, language);
  return [h(body, 'p', { class: 'dt-faint', text: sentence(language, 'fix-all.needed', { names, count }) })];
}

function named(cells: readonly string[], { labels }: IFixShown, language: Language): string {
  return listed(
    language,
    cells.map(cell => labels[cell] ?? '')
  );
}

type Label =
  'fix-all.begin' | 'fix-all.cancel' | 'fix-all.apply' | 'fix-all.apply-now' | 'fix-all.undo' | 'fix-all.again';

function action(
  { body, scope, actions, language }: IDrawing,
  label: Label,
  step: FixStep,
  isUsable: boolean,
  isPrimary = false
): HTMLButtonElement {
  const look = { class: isPrimary ? 'dt-primary' : '', data: { key: `${step}-fix` } };
  const made = button(body, scope, sentence(language, label), () => actions.fix(step), look);
  made.disabled = !isUsable;
  return made;
}
