/**
 * Where a site of a trace is now: the cell or file it lies in may have been edited since.
 */
import type { ITrace } from './trace';

/** A span of source as it was when it was traced. Lines count from 1, columns from 0 in UTF-16; -1 for unknown. */
export interface IPlace {
  readonly file: string;
  /** Execution count of the cell, -1 in a file. */
  readonly cell: number;
  readonly cellId: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  /** The whole traced line, null when the trace does not hold it. */
  readonly text: string | null;
}

export function placeOf(trace: ITrace, site: number): IPlace {
  const { sites, strings } = trace;
  const file = strings[sites.file[site]];
  const cell = sites.cell[site];
  const [line, endLine] = [sites.line[site], sites.end_line[site]];
  const source = sourceLines(trace, file, cell);
  const text = source(line);
  return {
    file,
    cell,
    cellId: strings[sites.cell_id[site]],
    line,
    column: fromBytes(text, sites.column[site]),
    endLine,
    endColumn: fromBytes(source(endLine), sites.end_column[site]),
    text
  };
}

/** The place of a line of the traced source. */
export function linePlace(trace: ITrace, file: string, cell: number, line: number): IPlace {
  const at = sourceAt(trace, file, cell);
  const cellId = at < 0 ? '' : trace.strings[trace.sources.cell_id[at]];
  const text = sourceLines(trace, file, cell)(line);
  return { file, cell, cellId, line, column: -1, endLine: line, endColumn: -1, text };
}

function sourceAt(trace: ITrace, file: string, cell: number): number {
  const { sources, strings } = trace;
  for (let i = 0; i < sources.length; i++) {
    if (strings[sources.file[i]] === file && sources.cell[i] === cell) {
      return i;
    }
  }
  return -1;
}

/** Lines of a traced source by their number. */
function sourceLines(trace: ITrace, file: string, cell: number): (line: number) => string | null {
  const { sources, strings } = trace;
  return line => {
    for (let i = 0; i < sources.length; i++) {
      if (strings[sources.file[i]] === file && sources.cell[i] === cell) {
        const text = linesOf(trace, i).at(line - sources.line[i]);
        if (line >= sources.line[i] && text !== undefined) {
          return text;
        }
      }
    }
    return null;
  };
}

const split = new WeakMap<ITrace, Map<number, string[]>>();

function linesOf(trace: ITrace, source: number): string[] {
  const known = split.get(trace) ?? new Map<number, string[]>();
  split.set(trace, known);
  const lines = known.get(source) ?? trace.strings[trace.sources.text[source]].split('\n');
  known.set(source, lines);
  return lines;
}

/** A column in UTF-8 bytes, as Python counts, as one in UTF-16, as a browser does. */
export function fromBytes(text: string | null, bytes: number): number {
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
 * The number (from 1) of the line that was `line` when it had this text: itself if it still has, else the nearest that does, else 0.
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
