/**
 * The notebook's fix as the panel shows it: what the kernel has said, and what became of it in the page.
 */
import type { IChangedCell, IFixing } from './messages';
import { sentence, type Language } from './words/catalogue';

/** `applied`: the cells have the changes. The others: what had to run again runs, or has run. */
export type Applied = 'no' | 'applied' | Rerun;
export type Rerun = 'running' | 'clean' | 'failed';

/** What is shown until the kernel has said how far it is. */
export const BEGINNING: IFixing = {
  state: 'running',
  round: 1,
  cells: [],
  cell: '',
  bugs: [],
  closing: '',
  changed: [],
  run: [],
  needed: []
};

/** A finding whose fix is tried alone: of which trace, and its number there. */
export interface ITried {
  readonly recorded: string;
  readonly finding: number;
}

export interface IFixShown {
  readonly fixing: IFixing;
  /** Null where all errors of the notebook are fixed. */
  readonly tried: ITried | null;
  /** When the cell began that runs now (ms since 1970). */
  readonly since: number;
  /** The names of its cells as the notebook numbers them now, by their ids. */
  readonly labels: Readonly<Record<string, string>>;
  readonly applied: Applied;
}

/** There are changes that hold, and the cells do not have them yet. */
export function holds({ fixing: { changed }, applied }: IFixShown): boolean {
  return changed.length > 0 && applied === 'no';
}

/** There are changes that hold, in their cells or not yet. */
export function hasHeld(fix: IFixShown): boolean {
  return fix.fixing.changed.length > 0 && !isRunning(fix);
}

export function isRunning({ fixing: { state } }: IFixShown): boolean {
  return state === 'running';
}

/** What is said of a bug, with the number that each cell has now: what ran it was a fresh kernel, which has its own. */
export function renumbered(text: string, { fixing, labels }: IFixShown): string {
  const now = (known: string, number: string): string => labels[fixing.cells[Number(number) - 1]] ?? known;
  return text.replace(/\bIn\[(\d+)\]/g, now);
}

/** By their ids what code cells are called: `In[5]`; one that has not run by how far it is below one that has. */
export function cellLabels(
  cells: ReadonlyArray<{ readonly id: string; readonly count: number | null }>,
  language: Language
): Record<string, string> {
  let cell = '';
  let number = 0;
  const label = (count: number | null): string => {
    [cell, number] = count === null ? [cell, number + 1] : [`In[${count}]`, 0];
    const key = cell === '' ? 'fix-all.cell' : 'fix-all.cell-below';
    return number === 0 ? cell : sentence(language, key, { number, cell });
  };
  return Object.fromEntries(cells.map(({ id, count }) => [id, label(count)]));
}

/** A code cell's id and text. */
export interface ICellText {
  readonly cell: string;
  readonly source: string;
}

/** Whether every cell that the fix changes has the text from before, or after it. */
export function have(
  which: 'before' | 'after',
  changed: readonly IChangedCell[],
  cells: readonly ICellText[]
): boolean {
  const now = new Map(cells.map(({ cell, source }) => [cell, source]));
  return changed.length > 0 && changed.every(each => now.get(each.cell) === each[which]);
}

/** The characters of a text that differ in another: `[from, to)` becomes `insert`. */
interface IReplacement {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

/** The least that makes one text the other, so that the cursor and marks beside it stay where they are. */
export function difference(before: string, after: string): IReplacement {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) {
    from++;
  }
  let same = 0;
  while (same < most - from && before[before.length - 1 - same] === after[after.length - 1 - same]) {
    same++;
  }
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}
