/**
 * The changes since another trace, which `devtrace.diff` puts beside a trace: made and worded in Python, here only given types.
 */
import { isObject } from './findings';

export interface IChange {
  /** `+` came, `-` went, `~` is another. */
  readonly sign: string;
  readonly what: string;
  readonly where: string;
  readonly before: string;
  readonly after: string;
  readonly worse: boolean;
  /** The rows of the trace that it is about, -1 for none. */
  readonly site: number;
  readonly module: number;
  readonly finding: number;
}

export interface IComparison {
  readonly headline: string;
  readonly totals: readonly string[];
  readonly worse: boolean;
  readonly changes: readonly IChange[];
  /** The number of changes that were left out. */
  readonly more: number;
}

/** The numbers of rows that a change may name. */
export interface ILengths {
  readonly sites: number;
  readonly modules: number;
  readonly findings: number;
}

/** The comparison that lies beside a trace; null where there is none, or something else. */
export function readComparison(value: unknown, lengths: ILengths): IComparison | null {
  if (!isObject(value) || !Array.isArray(value['changes'])) {
    return null;
  }
  return {
    headline: text(value['headline']),
    totals: Array.isArray(value['totals']) ? value['totals'].map(text) : [],
    worse: value['worse'] === true,
    changes: value['changes'].filter(isObject).map(change => ({
      sign: text(change['sign']),
      what: text(change['what']),
      where: text(change['where']),
      before: text(change['before']),
      after: text(change['after']),
      worse: change['worse'] === true,
      site: row(change['site'], lengths.sites),
      module: row(change['module'], lengths.modules),
      finding: row(change['finding'], lengths.findings)
    })),
    more: Math.max(row(value['more'], Infinity), 0)
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function row(value: unknown, length: number): number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < length ? (value as number) : -1;
}
