/**
 * What became of the fix of a finding: it stands in its cells, or has run there.
 */
import { groupedByText, planFix } from './edit';
import { countOf, type IEntry } from './entries';
import type { IEdit, IFinding } from './findings';
import { spanOfLine, textOfCell } from './source-span';
import { sourceLabel, type ITrace } from './trace';
import { listed, sentence } from './words/catalogue';

/** A code cell as it is now. */
export interface ICell {
  readonly id: string;
  readonly text: string;
  /** Execution count; null before its first run, and while it runs. */
  readonly count: number | null;
  /** Its text is no longer the one that ran. */
  readonly isDirty: boolean;
  readonly hasFailed: boolean;
}

export interface IRepair {
  readonly state: 'inserted' | 'ran';
  readonly sentence: string;
}

/** What a fix is held against. */
interface ISurroundings {
  readonly entries: readonly IEntry[];
  readonly cells: ReadonlyMap<string, ICell>;
  /** The edits, as `editKey` names them, that were put into files since the page was loaded. */
  readonly inFiles: ReadonlySet<string>;
}

/** By the key of an entry and the number of a finding. */
export type Repairs = ReadonlyMap<string, ReadonlyMap<number, IRepair>>;

export function repairsOf(around: ISurroundings): Repairs {
  const repairs = new Map<string, ReadonlyMap<number, IRepair>>();
  for (const entry of around.entries) {
    const found = (entry.outline.findings ?? []).flatMap((finding, i) => {
      const repair = repairOf(entry, finding, around);
      return repair === null ? [] : [[i, repair] as const];
    });
    if (found.length > 0) {
      repairs.set(entry.key, new Map(found));
    }
  }
  return repairs;
}

/** The traces with a finding whose fix has run, newest last. */
export function repairedIn(repairs: Repairs): string[] {
  return [...repairs].flatMap(([key, found]) => ([...found.values()].some(hasRun) ? [key] : []));
}

export function hasRun(repair: IRepair): boolean {
  return repair.state === 'ran';
}

export function editKey({ file, line, before, after }: IEdit): string {
  return JSON.stringify([file, line, before, after]);
}

function repairOf(entry: IEntry, finding: IFinding, around: ISurroundings): IRepair | null {
  const parts = groupedByText(finding.edits).map(edits => partOf(entry.outline, edits, around));
  if (parts.length === 0 || !parts.every(part => part?.isDone)) {
    return null;
  }
  const known = parts.filter(part => part !== null);
  const run = around.cells.get(entry.cell);
  return hasToRun(known) || !run || !ranSince(run, entry, finding, around)
    ? { state: 'inserted', sentence: whatToRun(entry, known, run) }
    : { state: 'ran', sentence: sentence(entry.outline.language, 'repair.ran', { cell: nameOf(run, entry.label) }) };
}

/** The edits of a fix that are for one text. */
interface IPart {
  /** Null for a file. */
  readonly cell: ICell | null;
  readonly name: string;
  /** Execution count of the cell when it was traced. */
  readonly traced: number;
  readonly isDone: boolean;
}

/** Null where the text is no longer there. */
function partOf(trace: ITrace, edits: readonly IEdit[], { cells, inFiles }: ISurroundings): IPart | null {
  const [{ cell: traced, file, line }] = edits;
  const label = sourceLabel(traced, file);
  const { cellId } = spanOfLine(trace, file, traced, line);
  if (traced < 0 && cellId === '') {
    return { cell: null, name: label, traced, isDone: edits.every(edit => inFiles.has(editKey(edit))) };
  }
  const cell = cells.get(cellId);
  if (!cell) {
    return null;
  }
  const anchored = edits.map(edit => ({ edit, anchor: spanOfLine(trace, file, traced, edit.line).text }));
  const isDone = isChanged(trace, cell) && planFix(cell.text, anchored) === 'done';
  return { cell, name: nameOf(cell, label), traced, isDone };
}

/** An edit that seems to stand in a text that nobody has touched is not one that was put in. */
function isChanged(trace: ITrace, { id, text }: ICell): boolean {
  const traced = textOfCell(trace, id);
  return traced === null || asWritten(traced) !== asWritten(text);
}

/** `%%devtrace` runs as a comment. */
function asWritten(text: string): string {
  return text.replace(/^# (?=%%devtrace\b)/m, '').trimEnd();
}

/** In a page that was loaded since, only the number tells whether a cell has run with what now stands in it. */
function hasToRun(parts: readonly IPart[]): boolean {
  return parts.some(({ cell, traced }) => cell === null || cell.isDirty || cell.count === traced);
}

/** The cell of a finding has run again to its end, and no trace of that run has the finding again. */
function ranSince(run: ICell, entry: IEntry, finding: IFinding, { entries }: ISurroundings): boolean {
  const later = entries.slice(entries.indexOf(entry) + 1).findLast(({ cell }) => cell === entry.cell);
  const hasCome = run.count !== null && run.count !== countOf(entry) && !run.isDirty && !run.hasFailed;
  return hasCome && !(later && isThere(finding, entry.outline, later.outline));
}

/** The same rule speaks of the same line, as it was or as the fix left it. */
function isThere(finding: IFinding, before: ITrace, after: ITrace): boolean {
  const lineOf = ({ strings, sites }: ITrace, site: number): string =>
    site < 0 ? '' : strings[sites.text[site]].trim();
  const line = lineOf(before, finding.site);
  return (after.findings ?? []).some(({ rule, site }) => {
    const text = lineOf(after, site);
    return rule === finding.rule && (text === line || finding.edits.some(edit => edit.after.includes(text)));
  });
}

/** `In[9] has the fix: run it and the cells below again, as far as In[12].` */
function whatToRun(entry: IEntry, parts: readonly IPart[], run: ICell | undefined): string {
  const { language } = entry.outline;
  const names = listed(
    language,
    parts.map(({ name }) => name)
  );
  const about = { names, count: parts.length };
  const traced = `In[${countOf(entry) ?? ' '}]`;
  const last = run ? nameOf(run, traced) : traced;
  if (parts.some(part => part.cell === null)) {
    return sentence(language, 'repair.files', { ...about, last });
  }
  if (parts.every(part => part.cell?.id === entry.cell)) {
    return sentence(language, 'repair.run', about);
  }
  return sentence(language, hasToRun(parts) ? 'repair.run-from' : 'repair.run-below', { ...about, last });
}

/** As the notebook numbers it now. */
function nameOf({ count }: ICell, label: string): string {
  return count === null ? label : `In[${count}]`;
}
