/**
 * What became of the fix of a finding: whether it stands in its cells, which of them have run since, and whether that was the end of it.
 */
import { groupedByText, planFix } from './edit';
import type { IEdit, IFinding } from './findings';
import { countOf, type IEntry } from './entries';
import { spanOfLine } from './source-span';
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
  /** The highest execution count of the notebook when it was edited last; null when nobody saw it edited. */
  readonly editedAt: number | null;
  readonly hasFailed: boolean;
}

export interface IRepair {
  /** 'edited': its cell was changed otherwise, after which the finding came again. */
  readonly state: 'edited' | 'inserted' | 'fixed';
  readonly sentence: string;
}

/** What a fix is held against. */
export interface ISurroundings {
  readonly entries: readonly IEntry[];
  readonly cells: ReadonlyMap<string, ICell>;
  /** The edits, as `editKey` names them, that were put into files since the page was loaded. */
  readonly inFiles: ReadonlySet<string>;
}

export type Repairs = ReadonlyMap<string, ReadonlyMap<number, IRepair>>;

/** By the key of an entry and the number of a finding. */
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

/** The traces with a finding that was fixed, newest last. */
export function fixedIn(repairs: Repairs): string[] {
  return [...repairs].flatMap(([key, found]) => ([...found.values()].some(isFixed) ? [key] : []));
}

export function isFixed(repair: IRepair | null | undefined): boolean {
  return repair?.state === 'fixed';
}

export function editKey({ file, line, before, after }: IEdit): string {
  return JSON.stringify([file, line, before, after]);
}

function repairOf(entry: IEntry, finding: IFinding, around: ISurroundings): IRepair | null {
  const story = storyOf(entry, finding, around);
  if (story === null) {
    return null;
  }
  if (!story.isInserted) {
    return story.waiting.length > 0 && story.isLater ? { state: 'edited', sentence: whatToRun(story) } : null;
  }
  const proof = story.waiting.length > 0 || story.files.length > 0 ? null : proofOf(story, finding, around);
  return proof === null ? { state: 'inserted', sentence: whatToRun(story) } : { state: 'fixed', sentence: proof };
}

/** A finding's fix and the cells that it is about. */
interface IStory {
  readonly entry: IEntry;
  readonly isInserted: boolean;
  /** Names of the cells that it changes, and of the files. */
  readonly edited: readonly string[];
  readonly files: readonly string[];
  /** The cells of the fix that were edited and have not run since. */
  readonly waiting: readonly IGroup[];
  /** Between them and the cell that was traced: where the tensor was made and moved. */
  readonly between: ReadonlyArray<Pick<IGroup, 'cell' | 'label'>>;
  readonly run: ICell | null;
  readonly isLater: boolean;
  /** The fix is in a class, whose objects stay as they were until they are made again. */
  readonly isInClass: boolean;
}

function storyOf(entry: IEntry, finding: IFinding, around: ISurroundings): IStory | null {
  const groups = groupedByText(finding.edits).map(edits => groupOf(entry.outline, edits, around));
  if (groups.length === 0 || groups.some(group => group === null)) {
    return null;
  }
  const known = groups.filter(group => group !== null);
  const inCells = known.filter(({ cell }) => cell !== null);
  const waiting = inCells.filter(hasToRun);
  const count = countOf(entry);
  return {
    entry,
    isInserted: known.every(({ isDone }) => isDone),
    edited: inCells.map(nameOf),
    files: known.filter(({ cell }) => cell === null).map(nameOf),
    waiting,
    between: between(entry, finding, around),
    run: around.cells.get(entry.cell) ?? null,
    isLater: count !== null && waiting.every(({ cell }) => count > (cell?.editedAt ?? Infinity)),
    isInClass: finding.edits.some(edit => isInClass(entry.outline, edit))
  };
}

/** The edits of a fix that are for one text. */
interface IGroup {
  /** Null for a file. */
  readonly cell: ICell | null;
  readonly label: string;
  /** Execution count of the cell when it was traced. */
  readonly traced: number;
  readonly isDone: boolean;
}

/** Null where the text is no longer there. */
function groupOf(trace: ITrace, edits: readonly IEdit[], { cells, inFiles }: ISurroundings): IGroup | null {
  const [{ cell: traced, file, line }] = edits;
  const label = sourceLabel(traced, file);
  const { cellId } = spanOfLine(trace, file, traced, line);
  if (traced < 0 && cellId === '') {
    return { cell: null, label, traced, isDone: edits.every(edit => inFiles.has(editKey(edit))) };
  }
  const cell = cells.get(cellId);
  if (!cell) {
    return null;
  }
  const anchored = edits.map(edit => ({ edit, anchor: spanOfLine(trace, file, traced, edit.line).text }));
  return { cell, label, traced, isDone: isChanged(trace, cell) && planFix(cell.text, anchored) === 'done' };
}

/** An edit that seems to stand in a text that nobody has touched is not one that was put in. */
function isChanged({ sources, strings }: ITrace, { id, text }: ICell): boolean {
  const source = Array.from({ length: sources.length }, (_, row) => row).find(
    row => strings[sources.cell_id[row]] === id
  );
  return source === undefined || asWritten(strings[sources.text[source]]) !== asWritten(text);
}

/** `%%devtrace` runs as a comment. */
function asWritten(text: string): string {
  return text.replace(/^# (?=%%devtrace\b)/m, '').trimEnd();
}

/** In a page that was loaded since, only the number tells whether a cell has run with what now stands in it. */
function hasToRun({ cell, traced }: IGroup): boolean {
  return cell !== null && (cell.isDirty || (cell.editedAt === null && cell.count === traced));
}

/** The cells after the fix and before the one that was traced in which the finding's tensor was made or moved. */
function between({ outline, cell: run }: IEntry, finding: IFinding, { cells }: ISurroundings): IStory['between'] {
  const { sites, strings } = outline;
  const first = Math.min(...finding.edits.map(({ cell }) => cell));
  const passed = sitesAfterTheFix(outline, finding)
    .filter(site => site >= 0 && sites.cell[site] > first)
    .sort((a, b) => sites.cell[a] - sites.cell[b])
    .map(site => [strings[sites.cell_id[site]], sourceLabel(sites.cell[site], '')] as const);
  return [...new Map(passed)].flatMap(([id, label]) => {
    const cell = id === run ? undefined : cells.get(id);
    return cell ? [{ cell, label }] : [];
  });
}

/** Of a fix on the way of the tensor, only what came after it: what was before goes into the fixed line as it is. */
function sitesAfterTheFix({ sites, strings }: ITrace, { edits, culprit, site }: IFinding): number[] {
  const { born = -1, moved = -1, chain = [] } = culprit ?? {};
  const isChanged = (at: number): boolean =>
    at >= 0 &&
    edits.some(
      ({ file, line }) => strings[sites.file[at]] === file && liesOn(line, sites.line[at], sites.end_line[at])
    );
  const way = [...chain, site];
  const changed = way.findLastIndex(isChanged);
  return changed < 0 || isChanged(born) ? [born, moved, ...chain] : [moved, ...way.slice(changed + 1, -1)];
}

function liesOn(line: number, first: number, last: number): boolean {
  return first <= line && line <= Math.max(first, last);
}

function isInClass(trace: ITrace, { file, cell, line }: IEdit): boolean {
  for (let at = line; at > 0; at--) {
    const text = spanOfLine(trace, file, cell, at).text ?? '';
    if (/^[^\s#)\]}]/.test(text)) {
      return /^class\b/.test(text);
    }
  }
  return false;
}

/** `In[9] was edited: run it, then In[12] again.` */
function whatToRun(story: IStory): string {
  const { waiting, files, isLater, isInClass: isClass, entry, run } = story;
  const { language } = entry.outline;
  const last = nameOf({ cell: run, label: `In[${countOf(entry) ?? ' '}]` });
  if (files.length > 0) {
    const names = [...files, ...waiting.map(nameOf)];
    return sentence(language, 'repair.files', { names: listed(language, names), count: names.length, last });
  }
  if (waiting.length === 0) {
    return whatHasIt(story, last);
  }
  const count = waiting.length;
  const names = listed(language, waiting.map(nameOf));
  const edit = sentence(language, isLater ? 'repair.edited-not-run' : 'repair.edited', { names, count });
  const then = followers(story, last);
  if (then.length === 0) {
    return sentence(language, 'repair.run', { edit, count });
  }
  return isClass
    ? sentence(language, 'repair.run-class', { edit, count, last })
    : sentence(language, 'repair.run-then', { edit, count, then: listed(language, then) });
}

/** All cells of the fix have run: `In[13] has the fix: run In[12] again.` */
function whatHasIt({ edited, isInClass: isClass, entry, run }: IStory, last: string): string {
  const { language } = entry.outline;
  const isUntraced = run !== null && run.count !== null && run.count !== countOf(entry);
  const again = isUntraced ? 'repair.has-fix-traced' : 'repair.has-fix';
  const names = listed(language, edited);
  return sentence(language, isClass ? 'repair.has-fix-class' : again, { names, count: edited.length, last });
}

/** The cells that are to run after those of the fix. */
function followers({ waiting, between: passed, run }: IStory, last: string): string[] {
  const isWaiting = (id: string): boolean => waiting.some(({ cell }) => cell?.id === id);
  const names = passed.filter(({ cell }) => cell !== null && !isWaiting(cell.id)).map(nameOf);
  return run !== null && isWaiting(run.id) ? [] : [...names, last];
}

/** As the notebook numbers it now. */
function nameOf({ cell, label }: Pick<IGroup, 'cell' | 'label'>): string {
  const count = cell?.count ?? null;
  return count === null ? label : `In[${count}]`;
}

/** What shows that a fix has fixed its finding; null where nothing does. */
function proofOf({ entry, run }: IStory, finding: IFinding, { entries }: ISurroundings): string | null {
  const { language } = entry.outline;
  const later = entries.slice(entries.indexOf(entry) + 1).filter(({ cell }) => cell !== '' && cell === entry.cell);
  const next = later.at(-1);
  if (next) {
    return isGone(finding, entry.outline, next.outline)
      ? sentence(language, 'repair.ran-clean', { cell: next.label })
      : null;
  }
  const count = run?.count ?? null;
  const hasRun = count !== null && count !== countOf(entry) && !run?.isDirty && !run?.hasFailed;
  return hasRun && finding.severity === 'error' ? sentence(language, 'repair.ran', { cell: `In[${count}]` }) : null;
}

/** No error is left, nor the same rule for the same line, as it was or as the fix left it. */
function isGone(finding: IFinding, before: ITrace, after: ITrace): boolean {
  const lineOf = (trace: ITrace, site: number): string =>
    site < 0 ? '' : trace.strings[trace.sites.text[site]].trim();
  const line = lineOf(before, finding.site);
  const isSame = ({ rule, site }: IFinding): boolean => {
    const text = lineOf(after, site);
    return rule === finding.rule && (text === line || finding.edits.some(edit => edit.after.includes(text)));
  };
  return !(after.findings ?? []).some(each => each.severity === 'error' || isSame(each));
}
