/**
 * The traces of a notebook, as lists show them: which are the last of their cell, of this kernel, clean.
 */
import type { Severity } from './findings';
import type { ITrace } from './trace';
import { joined, sentence, type Language } from './words/catalogue';

/** A trace of this notebook, from a cell's output or out of the kernel's memory. */
export interface IEntry {
  readonly key: string;
  readonly label: string;
  /** The id of the cell that ran, "" when it is not known. */
  readonly cell: string;
  readonly seconds: number;
  readonly ops: number;
  /** Findings, ledger, sites and sources; its ops may have been left away. */
  readonly outline: ITrace;
  /** What the kernel knows it by, -1 when it does not. */
  readonly number: number;
  /** An earlier kernel recorded it: what it saw is gone, and its number may come again. */
  readonly isEarlier: boolean;
  /** Its error is over: its cell has run again since, and left no trace of that run. */
  readonly hasRunSince?: boolean;
}

/** The traces of this kernel that the last run of their cell left; of what came before them the user has moved on. */
export function latest(all: readonly IEntry[]): readonly IEntry[] {
  const entries = all.filter(({ isEarlier }) => !isEarlier);
  const last = new Map(entries.map(entry => [entry.cell, entry]));
  return entries.filter(entry => !entry.hasRunSince && (entry.cell === '' || last.get(entry.cell) === entry));
}

const SEVERITIES: readonly Severity[] = ['error', 'warning', 'note'];

/** `1 error` */
export const COUNTS = { error: 'count.error', warning: 'count.warning', note: 'count.note' } as const;

type Counts = ReadonlyArray<readonly [severity: Severity, count: number]>;

/** How many findings of each severity some traces have, without those that are none. */
export function countsOf(entries: readonly IEntry[]): Counts {
  const findings = entries.flatMap(({ outline }) => outline.findings ?? []);
  return SEVERITIES.map(
    severity => [severity, findings.filter(each => each.severity === severity).length] as const
  ).filter(([, count]) => count > 0);
}

/** `1 error, 2 warnings, 3 notes` */
export function countsInWords(language: Language, counts: Counts): string {
  return joined(
    language,
    counts.map(([severity, count]) => sentence(language, COUNTS[severity], { count }))
  );
}

/** Nothing in it asks for something: a note does not. */
function isClean({ outline }: IEntry): boolean {
  return (outline.findings ?? []).every(({ severity }) => severity === 'note');
}

/** A tick stands exactly where this is true. */
export function isAllClear(entry: IEntry): boolean {
  return entry.outline.allClear && isClean(entry);
}

interface ISplit {
  /** The last run of each cell that has errors or warnings. */
  readonly found: readonly IEntry[];
  readonly clean: readonly IEntry[];
  /** Runs before the last one of their cell. */
  readonly past: readonly IEntry[];
  readonly earlier: readonly IEntry[];
}

/** The traces as the list of findings takes them apart. */
export function split(entries: readonly IEntry[]): ISplit {
  const current = latest(entries);
  return {
    found: current.filter(entry => !isClean(entry)),
    clean: current.filter(isClean),
    past: entries.filter(entry => !entry.isEarlier && !current.includes(entry)),
    earlier: entries.filter(({ isEarlier }) => isEarlier)
  };
}

/** As many traces in a row without errors and warnings fold into one line. */
const FOLDED = 3;

/** The traces, the newest first, in rows: of clean ones in a row one, below the newest. */
export function rowsOf(entries: readonly IEntry[]): ReadonlyArray<readonly IEntry[]> {
  const rows: IEntry[][] = [];
  let clean: IEntry[] = [];
  const end = (): void => {
    rows.push(...(clean.length < FOLDED ? clean.map(entry => [entry]) : [clean]));
    clean = [];
  };
  for (const [i, entry] of [...entries].reverse().entries()) {
    if (i > 0 && isClean(entry)) {
      clean.push(entry);
    } else {
      end();
      rows.push([entry]);
    }
  }
  end();
  return rows;
}

/**
 * Marks the traces that an earlier kernel left in the outputs. The kernel knows its own by number, but for the first ones, which it may
 * have dropped: as many of the unknown are not marked. Entries come oldest first.
 */
export function withEarlier(
  entries: readonly IEntry[],
  isLive: (entry: IEntry) => boolean,
  kept: readonly number[]
): IEntry[] {
  const unknown = entries.filter(entry => entry.number < 0 && !isLive(entry));
  const dropped = kept.length === 0 ? 0 : Math.min(...kept) - 1;
  const earlier = new Set(unknown.slice(0, Math.max(unknown.length - dropped, 0)));
  return entries.map(entry => (earlier.has(entry) ? { ...entry, isEarlier: true } : entry));
}

/** The number that a cell had when it was traced; null for a trace that is of none. */
export function countOf({ label }: Pick<IEntry, 'label'>): number | null {
  const count = /^In\[(\d+)\]/.exec(label)?.[1];
  return count === undefined ? null : Number(count);
}

/** Marks the errors of cells whose last run is a later one: by their ids the numbers that cells have now, null while they run. */
export function withRunSince(entries: readonly IEntry[], numbers: ReadonlyMap<string, number | null>): IEntry[] {
  return entries.map(entry => {
    const hasError = (entry.outline.findings ?? []).some(({ severity }) => severity === 'error');
    const hasRunSince = hasError && (numbers.get(entry.cell) ?? 0) > (countOf(entry) ?? Infinity);
    return hasRunSince === (entry.hasRunSince ?? false) ? entry : { ...entry, hasRunSince };
  });
}

/** A report that is displayed again, perhaps below another cell, is no other trace. */
export function onePerTrace(entries: readonly IEntry[]): IEntry[] {
  const kept = new Map<string, IEntry>();
  for (const entry of entries) {
    const { recorded } = entry.outline;
    const known = recorded === '' ? undefined : kept.get(recorded);
    if (!known || (!isOwn(known) && isOwn(entry))) {
      kept.set(recorded === '' ? entry.key : recorded, entry);
    }
  }
  return entries.filter(entry => kept.get(entry.outline.recorded) === entry || kept.get(entry.key) === entry);
}

/** The cell of the entry is the one that ran. */
function isOwn({ number, cell, outline: { sites, strings } }: IEntry): boolean {
  return number >= 0 || sites.cell_id.some(id => strings[id] === cell);
}
