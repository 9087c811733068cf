/**
 * How a fix that is run goes, and what came: the same in a finding, which tries its own, and in the panel, which fixes the notebook.
 */
import { lineLabel } from '../layout/finding-text';
import { formatTime } from '../layout/units';
import { hasHeld, isRunning, renumbered, type IFixShown } from '../model/fixing';
import type { IFixedBug } from '../model/messages';
import { sentence, type Language } from '../model/words/catalogue';
import { changePreview } from './change';
import { withCode } from './chips';
import { h } from './dom';

/** Makes `In[8] line 7` a link to that line. */
export type LineLink = (label: string, cell: string, line: number) => Node;

/** `Round 2: In[4] runs. It took 12 s when it ran last. 3 cells are left below it.`, or what it came to. */
export function fixStatus(owner: Node, fix: IFixShown, language: Language): HTMLElement[] {
  const { fixing } = fix;
  const texts: Partial<Record<typeof fixing.state, string>> = {
    running: [begun(fix, language), ...remaining(fix, language)].join(' '),
    cancelled: sentence(language, 'fix-all.cancelled')
  };
  const text = texts[fixing.state] ?? renumbered(fixing.closing, fix);
  const look = { class: 'dt-fix-status', role: 'status', data: { state: fixing.state } };
  return [h(owner, 'p', look, signOf(fix, text), ...withCode(owner, text)), ...progress(owner, fix)];
}

/** Whether a fix that was tried holds, where the sentence does not begin with that. */
function signOf(fix: IFixShown, text: string): string {
  const isOver = !isRunning(fix) && fix.fixing.state !== 'cancelled';
  return fix.tried !== null && isOver && !/^[✓✗]/.test(text) ? `${hasHeld(fix) ? '✓' : '✗'} ` : '';
}

function begun({ fixing: { round, cell }, labels, tried }: IFixShown, language: Language): string {
  const name = labels[cell] ?? '';
  if (tried !== null) {
    return name === '' ? sentence(language, 'trial.starts') : sentence(language, 'trial.runs', { cell: name });
  }
  return name === ''
    ? sentence(language, 'fix-all.starts', { round })
    : sentence(language, 'fix-all.runs', { round, cell: name });
}

function remaining({ fixing: { expected, below } }: IFixShown, language: Language): string[] {
  const took = expected === undefined ? [] : [{ time: formatTime(expected * 1e9) }];
  const left = below === undefined || below === 0 ? [] : [{ count: below }];
  return [
    ...took.map(values => sentence(language, 'fix-all.expected', values)),
    ...left.map(values => sentence(language, 'fix-all.below', values))
  ];
}

/** A bar that fills in the time that the cell took when it ran last, from where it is now. */
function progress(owner: Node, fix: IFixShown): HTMLElement[] {
  const { expected } = fix.fixing;
  if (!isRunning(fix) || expected === undefined || expected === 0) {
    return [];
  }
  const passed = (fix.since - Date.now()) / 1000;
  const style = { '--dt-expected': `${expected}s`, '--dt-passed': `${passed}s` };
  return [h(owner, 'div', { class: 'dt-progress', style, aria: { hidden: 'true' } }, h(owner, 'span'))];
}

/** The candidates that were tried and did not hold, each with what happened. */
export function refusedCandidates(owner: Node, bug: IFixedBug, fix: IFixShown, language: Language): HTMLElement[] {
  const lines = (bug.refused ?? []).map(({ help, why }) => {
    const text = renumbered(sentence(language, 'trial.refused', { help, why }), fix);
    return h(owner, 'li', {}, '✗ ', ...withCode(owner, text));
  });
  return lines.length === 0 ? [] : [h(owner, 'ul', { class: 'dt-fix-refused' }, ...lines)];
}

/** The changes that mend a bug, each below its line. */
export function hunkPreviews(
  owner: Node,
  bug: IFixedBug,
  { labels }: IFixShown,
  language: Language,
  link: LineLink = label => h(owner, 'span', { text: label })
): HTMLElement[] {
  return bug.hunks.map(({ cell, file, line, before, after }) => {
    const source = cell === '' ? file : (labels[cell] ?? '');
    const at = before === '' ? line - 1 : line;
    return changePreview(owner, link(lineLabel(language, source, at, before), cell, at), { before, after });
  });
}
