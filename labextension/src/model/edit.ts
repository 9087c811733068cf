/**
 * An edit as a change of the text as it is now: which characters go, which come, and whether it still fits.
 */
import type { IEdit } from './findings';
import { grouped } from './groups';
import { locate } from './source-span';

/** Replace the characters [from, to) by `insert`; the new lines are [selectFrom, selectTo) afterwards. */
export interface IChange {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
  readonly selectFrom: number;
  readonly selectTo: number;
}

export type Misfit = 'changed' | 'done';

/**
 * Turn `edit` into a change of `text`; `anchor` is the traced text of the edit's line. 'changed': the lines that it replaces are no longer
 * there. 'done': the edit has been made already.
 */
export function planEdit(text: string, edit: IEdit, anchor: string | null): IChange | Misfit {
  const lines = text.split('\n');
  return edit.before === '' ? planInsertion(lines, edit, anchor) : planReplacement(lines, edit);
}

/** One edit of a fix, with the traced text of its line. */
interface IAnchored {
  readonly edit: IEdit;
  readonly anchor: string | null;
}

/** Turn all edits of a fix that are for one text into changes of it. */
export function planFix(text: string, edits: readonly IAnchored[]): readonly IChange[] | Misfit {
  return together(edits.map(({ edit, anchor }) => planEdit(text, edit, anchor)));
}

/** The parts of a fix: all fit, or none is made. */
export function together<Plan extends object>(plans: ReadonlyArray<Plan | Misfit>): readonly Plan[] | Misfit {
  const fitting = plans.filter(plan => typeof plan === 'object');
  return plans.every(plan => plan === 'done') ? 'done' : fitting.length === plans.length ? fitting : 'changed';
}

/** Group the edits of a fix by the cell or file that they are for, in the order of the first of each. */
export function groupedByText(edits: readonly IEdit[]): IEdit[][] {
  return [...grouped(edits, ({ cell, file }) => `${cell} ${file}`).values()];
}

function planInsertion(lines: readonly string[], edit: IEdit, anchor: string | null): IChange | Misfit {
  const line = edit.line === 0 ? 0 : locate(lines, edit.line, anchor);
  if (edit.line > 0 && line === 0) {
    return 'changed';
  }
  const added = edit.after.split('\n');
  if (added.every((each, i) => lines.at(line + i)?.trimEnd() === each.trimEnd())) {
    return 'done';
  }
  const at = startOf(lines, line);
  if (line === 0) {
    return { from: 0, to: 0, insert: `${edit.after}\n`, selectFrom: 0, selectTo: edit.after.length };
  }
  // Below the line's end, so that a last line without a newline works like the others.
  const end = at - 1;
  return { from: end, to: end, insert: `\n${edit.after}`, selectFrom: at, selectTo: at + edit.after.length };
}

function planReplacement(lines: readonly string[], edit: IEdit): IChange | Misfit {
  const before = edit.before.split('\n');
  const at = locateAll(lines, edit.line, before);
  if (at === 0) {
    return edit.after !== '' && locateAll(lines, edit.line, edit.after.split('\n')) > 0 ? 'done' : 'changed';
  }
  const from = startOf(lines, at - 1);
  const to = startOf(lines, at - 1 + before.length) - 1;
  if (edit.after === '') {
    return removal(from, to, at - 1 + before.length >= lines.length);
  }
  return { from, to, insert: edit.after, selectFrom: from, selectTo: from + edit.after.length };
}

/** Lines go with the break below them; the last ones with the break above. */
function removal(from: number, to: number, last: boolean): IChange {
  const [begin, end] = last ? [Math.max(from - 1, 0), to] : [from, to + 1];
  return { from: begin, to: end, insert: '', selectFrom: begin, selectTo: begin };
}

/** Find several lines one after the other, nearest to `line`; 0 for nowhere. */
function locateAll(lines: readonly string[], line: number, wanted: readonly string[]): number {
  const fits = (at: number): boolean => wanted.every((each, i) => lines.at(at - 1 + i)?.trimEnd() === each.trimEnd());
  const fitting = lines.map((_, i) => i + 1).filter(fits);
  const nearest = fitting.sort((a, b) => Math.abs(a - line) - Math.abs(b - line) || a - b);
  return nearest.at(0) ?? 0;
}

/** Characters before the line with this index; one beyond the end for the line after the last. */
function startOf(lines: readonly string[], index: number): number {
  return lines.slice(0, index).reduce((sum, line) => sum + line.length + 1, 0);
}
