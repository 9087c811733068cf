/**
 * The source that a trace carries, line by line, with what each line caused and what was found there.
 */
import { autocastOfOps } from '../model/autocasts';
import type { Severity } from '../model/findings';
import { grouped } from '../model/groups';
import { addCounts, countOps, countsBySite, type ILedgerCounts } from '../model/ledger';
import { utf16Column } from '../model/source-span';
import { userSite, type ITrace } from '../model/trace';

export interface IMark {
  /** Columns of the line's text (UTF-16), the end exclusive. */
  readonly begin: number;
  readonly end: number;
  readonly kind: Severity | 'born' | 'moved';
  readonly finding: number;
}

export interface ILine {
  readonly number: number;
  readonly text: string;
  /** Null where no op ran. */
  readonly cost: ILedgerCounts | null;
  /** Nanoseconds of the ops that the trace keeps of it. */
  readonly time: number;
  readonly marks: readonly IMark[];
  /** The dtype of the region of autocast in which its ops ran, "" for none. */
  readonly autocast: string;
  /** Sites on the line, the costliest first. */
  readonly sites: readonly number[];
}

export interface ISourceBlock {
  readonly file: string;
  readonly cell: number;
  readonly lines: readonly ILine[];
  readonly ops: number;
  /** The worst mark in it: 2 an error, 1 any other, 0 none. */
  readonly alarm: number;
}

/** More sources, or more lines of one, are not shown. */
const MOST_BLOCKS = 200;
const MOST_LINES = 20_000;
/** A site is marked for at most this many findings. */
const MOST_MARKS = 20;

/** Blocks with errors first, then those whose lines did the most. */
export function sourceBlocks(trace: ITrace): ISourceBlock[] {
  const costs = countsBySite(trace);
  const { file, cell, line } = trace.sites;
  const bySource = grouped(line.keys(), site => sourceKey(file[site], cell[site]));
  const marks = marksBySite(trace);
  const times = timesBySite(trace);
  const autocasts = autocastsBySite(trace);
  const blocks = Array.from({ length: Math.min(trace.sources.length, MOST_BLOCKS) }, (_, source) => {
    const key = sourceKey(trace.sources.file[source], trace.sources.cell[source]);
    return block(trace, source, {
      sites: grouped(bySource.get(key) ?? [], site => line[site]),
      costs,
      marks,
      times,
      autocasts
    });
  });
  return blocks.sort((a, b) => b.alarm - a.alarm || b.ops - a.ops);
}

/** `file` is the id of its string. */
function sourceKey(file: number, cell: number): string {
  return `${cell} ${file}`;
}

type SiteMark = Pick<IMark, 'kind' | 'finding'>;

function marksBySite(trace: ITrace): Map<number, SiteMark[]> {
  const marks = new Map<number, SiteMark[]>();
  const mark = (site: number, kind: IMark['kind'], finding: number): void => {
    const known = marks.get(site) ?? [];
    if (site >= 0 && known.length < MOST_MARKS) {
      known.push({ kind, finding });
      marks.set(site, known);
    }
  };
  (trace.findings ?? []).forEach(({ site, severity, culprit }, finding) => {
    mark(site, severity, finding);
    mark(culprit?.born ?? -1, 'born', finding);
    mark(culprit?.moved ?? -1, 'moved', finding);
  });
  return marks;
}

interface ISourceFacts {
  /** By line. */
  readonly sites: ReadonlyMap<number, readonly number[]>;
  /** By site. */
  readonly costs: ReadonlyMap<number, ILedgerCounts>;
  readonly marks: ReadonlyMap<number, readonly SiteMark[]>;
  readonly times: ReadonlyMap<number, number>;
  readonly autocasts: ReadonlyMap<number, string>;
}

function autocastsBySite(trace: ITrace): Map<number, string> {
  const found = new Map<number, string>();
  autocastOfOps(trace).forEach((dtype, op) => {
    if (dtype) {
      found.set(userSite(trace, trace.ops.site[op]), dtype);
    }
  });
  return found;
}

/** As the ledger does, an op of a package counts at the user's line that called it. */
function timesBySite(trace: ITrace): Map<number, number> {
  const { ops } = trace;
  const times = new Map<number, number>();
  for (let op = 0; op < ops.length; op++) {
    const site = userSite(trace, ops.site[op]);
    times.set(site, (times.get(site) ?? 0) + Math.max(ops.duration[op], 0));
  }
  return times;
}

function block(trace: ITrace, source: number, facts: ISourceFacts): ISourceBlock {
  const { sites: byLine, costs, marks, times, autocasts } = facts;
  const { sources } = trace;
  const lines = linesOf(trace, source).map((text, i): ILine => {
    const number = sources.line[source] + i;
    const sites = [...(byLine.get(number) ?? [])];
    const known = sites.map(site => costs.get(site)).filter(cost => cost !== undefined);
    sites.sort((a, b) => countOps(costs.get(b) ?? null) - countOps(costs.get(a) ?? null));
    const onLine = sites.flatMap(site => (marks.get(site) ?? []).map(mark => spanned(trace, site, number, text, mark)));
    const time = sites.reduce((sum, site) => sum + (times.get(site) ?? 0), 0);
    const autocast = sites.map(site => autocasts.get(site)).find(dtype => dtype !== undefined) ?? '';
    return { number, text, cost: addCounts(known), time, marks: onLine, autocast, sites };
  });
  const isAlarm = ({ kind }: IMark): boolean => kind === 'error';
  return {
    file: trace.strings[sources.file[source]],
    cell: sources.cell[source],
    lines,
    ops: lines.reduce((sum, line) => sum + countOps(line.cost), 0),
    alarm: lines.some(line => line.marks.some(isAlarm)) ? 2 : lines.some(line => line.marks.length > 0) ? 1 : 0
  };
}

/** As the user wrote them: `%%devtrace` runs as a comment (magic.py), so that the lines below it stay where they are. */
function linesOf({ sources, strings }: ITrace, source: number): string[] {
  const lines = strings[sources.text[source]].replace(/\r?\n$/, '').split(/\r\n|\r|\n/, MOST_LINES);
  const at = sources.cell[source] < 0 ? -1 : lines.findIndex(line => !/^\s*(#(?! %%devtrace\b)|$)/.test(line));
  return at < 0 ? lines : lines.with(at, lines[at].replace(/^# (?=%%devtrace\b)/, ''));
}

/** A mark on the part of its site that lies on the line; columns count bytes of UTF-8, and -1 is unknown. */
function spanned(trace: ITrace, site: number, line: number, text: string, mark: SiteMark): IMark {
  const { column, end_column: endColumn, end_line: endLine } = trace.sites;
  const begin = column[site] < 0 ? firstLetter(text) : utf16Column(text, column[site]);
  const isOneLine = endLine[site] <= line && endColumn[site] > 0;
  const end = isOneLine ? utf16Column(text, endColumn[site]) : text.trimEnd().length;
  return { ...mark, begin, end: Math.max(end, begin) };
}

function firstLetter(text: string): number {
  return text.length - text.trimStart().length;
}
