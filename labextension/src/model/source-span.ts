/**
 * A site of a trace as a span of text, and where that text is now: the cell or file may have been edited since.
 */
import type { ITrace } from './trace';

/** A span of source as it was when it was traced. Lines count from 1, columns from 0 in UTF-16; -1 for unknown. */
export interface ISourceSpan {
  readonly file: string;
  /** Execution count of the cell, -1 in a file. */
  readonly cell: number;
  readonly cellId: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  /** The whole traced line, null when the trace does not have it. */
  readonly text: string | null;
}

export function spanOfSite(trace: ITrace, site: number): ISourceSpan {
  const { sites, strings } = trace;
  const file = strings[sites.file[site]];
  const cell = sites.cell[site];
  const [line, endLine] = [sites.line[site], sites.end_line[site]];
  const textOf = lineReader(trace, file, cell);
  const text = textOf(line);
  return {
    file,
    cell,
    cellId: strings[sites.cell_id[site]],
    line,
    column: utf16Column(text, sites.column[site]),
    endLine,
    endColumn: utf16Column(textOf(endLine), sites.end_column[site]),
    text
  };
}

/** Make the span of a whole line of the traced source. */
export function spanOfLine(trace: ITrace, file: string, cell: number, line: number): ISourceSpan {
  const source = sourcesOf(trace, file, cell).at(0);
  const cellId = source === undefined ? '' : trace.strings[trace.sources.cell_id[source]];
  const text = lineReader(trace, file, cell)(line);
  return { file, cell, cellId, line, column: -1, endLine: line, endColumn: -1, text };
}

/** The rows of the table of sources that are of one file or cell. */
function sourcesOf({ sources, strings }: ITrace, file: string, cell: number): number[] {
  const rows = Array.from({ length: sources.length }, (_, row) => row);
  return rows.filter(row => strings[sources.file[row]] === file && sources.cell[row] === cell);
}

/** The traced source of the cell with this id, null when the trace does not have it. */
export function textOfCell({ sources, strings }: ITrace, cell: string): string | null {
  const source = sources.cell_id.findIndex(id => strings[id] === cell);
  return source < 0 ? null : strings[sources.text[source]];
}

/** Read lines of a traced source by their number. */
function lineReader(trace: ITrace, file: string, cell: number): (line: number) => string | null {
  const rows = sourcesOf(trace, file, cell);
  return line => {
    for (const row of rows) {
      const first = trace.sources.line[row];
      const text = line < first ? undefined : linesOf(trace, row).at(line - first);
      if (text !== undefined) {
        return text;
      }
    }
    return null;
  };
}

/** The lines of sources that were split once; it goes when the trace does. */
const splitSources = new WeakMap<ITrace, Map<number, string[]>>();

function linesOf(trace: ITrace, source: number): string[] {
  const known = splitSources.get(trace) ?? new Map<number, string[]>();
  splitSources.set(trace, known);
  const lines = known.get(source) ?? trace.strings[trace.sources.text[source]].split('\n');
  known.set(source, lines);
  return lines;
}

/** Turn a column in bytes of UTF-8, as Python counts, into one in UTF-16, as a browser does. */
export function utf16Column(text: string | null, bytes: number): number {
  if (text === null || bytes < 0) {
    return -1;
  }
  let [at, left] = [0, bytes];
  for (const character of text) {
    if (left <= 0) {
      break;
    }
    const point = character.codePointAt(0) ?? 0;
    left -= point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    at += character.length;
  }
  return at;
}

/**
 * Find the line that had number `line` (from 1) when it had this text: the same line if it still has, else the nearest that does, else 0.
 * Space at the end does not count. Without a text the line is taken to be where it was.
 */
export function locate(lines: readonly string[], line: number, text: string | null): number {
  if (text === null) {
    return line >= 1 && line <= lines.length ? line : 0;
  }
  const wanted = text.trimEnd();
  for (let away = 0; away < lines.length + line; away++) {
    for (const at of [line - away, line + away]) {
      if (at >= 1 && at <= lines.length && lines[at - 1].trimEnd() === wanted) {
        return at;
      }
    }
  }
  return 0;
}
