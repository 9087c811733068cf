/**
 * What stands beside the lines of each cell: the ledger of the newest trace that ran them, by line, and the spans of its findings.
 */
import type { Severity } from './findings';
import { placeOf, type IPlace } from './place';
import type { IEntry } from './sidebar';
import { deviceName, listed, type ITrace } from './trace';

export interface IStripe {
  readonly line: number;
  /** The traced text of the line, null when the trace does not hold it. */
  readonly text: string | null;
  /** Which trace this is from: `In[7]`. */
  readonly label: string;
  /** Ops by device, most first. */
  readonly devices: ReadonlyArray<{ readonly device: string; readonly ops: number; readonly simulated: boolean }>;
  readonly h2d: number;
  readonly d2h: number;
  readonly d2d: number;
  readonly syncs: number;
  readonly cpuCompute: number;
  readonly bytes: number;
}

export interface IMark {
  readonly place: IPlace;
  readonly severity: Severity;
  readonly message: string;
  readonly label: string;
}

export interface ICellStripes {
  readonly stripes: readonly IStripe[];
  readonly marks: readonly IMark[];
}

/** What is known of one cell so far, while the traces are gone through from the newest to the oldest. */
interface IKnown {
  /** The cell's text in the newest trace that touched it; traces of another text say nothing of this one. */
  readonly text: string | null;
  readonly lines: Map<number, IStripe>;
  readonly marks: IMark[];
  /** The newest trace of a run of the cell itself has been met: what its earlier runs did is over. */
  over: boolean;
}

/** For each cell, by its id. Entries come oldest first. */
export function stripesOf(entries: readonly IEntry[]): Map<string, ICellStripes> {
  const cells = new Map<string, IKnown>();
  for (const entry of [...entries].reverse()) {
    add(cells, entry);
  }
  return new Map(
    [...cells].map(([cell, { lines, marks }]) => [
      cell,
      { stripes: [...lines.values()].sort((a, b) => a.line - b.line), marks }
    ])
  );
}

function add(cells: Map<string, IKnown>, { outline, label, cell: run }: IEntry): void {
  const lines = linesOf(outline, label);
  const marks = marksOf(outline, label);
  for (const cell of new Set([
    ...lines.keys(),
    ...marks.map(({ place }) => place.cellId),
    ...(run === '' ? [] : [run])
  ])) {
    const text = textOf(outline, cell);
    const known = cells.get(cell) ?? { text, lines: new Map<number, IStripe>(), marks: [], over: false };
    cells.set(cell, known);
    if (!known.over && (text === null || known.text === null || text === known.text)) {
      // What was found in a line that has run since is history.
      known.marks.push(...marks.filter(({ place }) => place.cellId === cell && !known.lines.has(place.line)));
      for (const [line, stripe] of lines.get(cell) ?? []) {
        if (!known.lines.has(line)) {
          known.lines.set(line, stripe);
        }
      }
    }
    known.over ||= cell === run;
  }
}

function textOf({ sources, strings }: ITrace, cell: string): string | null {
  for (let source = 0; source < sources.length; source++) {
    if (strings[sources.cell_id[source]] === cell) {
      return strings[sources.text[source]];
    }
  }
  return null;
}

function marksOf(trace: ITrace, label: string): IMark[] {
  return (trace.findings ?? [])
    .filter(({ site }) => site >= 0)
    .map(({ site, severity, message }) => ({ place: placeOf(trace, site), severity, message, label }))
    .filter(({ place }) => place.cellId !== '');
}

function linesOf(trace: ITrace, label: string): Map<string, Map<number, IStripe>> {
  const cells = new Map<string, Map<number, IStripe>>();
  for (let row = 0; row < trace.ledger.length; row++) {
    const site = trace.ledger.site[row];
    const cell = site < 0 ? '' : trace.strings[trace.sites.cell_id[site]];
    if (cell === '') {
      continue;
    }
    const lines = cells.get(cell) ?? new Map<number, IStripe>();
    cells.set(cell, lines);
    const line = trace.sites.line[site];
    lines.set(line, added(lines.get(line), stripeOf(trace, row, label)));
  }
  return cells;
}

function stripeOf(trace: ITrace, row: number, label: string): IStripe {
  const { ledger } = trace;
  const place = placeOf(trace, ledger.site[row]);
  const ops = [...listed(ledger.ops, row)];
  const devices = ops.map((count, device) => ({
    device: deviceName(trace, device),
    ops: count,
    simulated: trace.devices.simulated[device] === 1
  }));
  return {
    line: place.line,
    text: place.text,
    label,
    devices: devices.filter(({ ops: count }) => count > 0).sort((a, b) => b.ops - a.ops),
    h2d: ledger.h2d[row],
    d2h: ledger.d2h[row],
    d2d: ledger.d2d[row],
    syncs: ledger.syncs[row],
    cpuCompute: ledger.cpu_compute[row],
    bytes: ledger.bytes[row]
  };
}

/** Two sites on one line. */
function added(a: IStripe | undefined, b: IStripe): IStripe {
  if (a === undefined) {
    return b;
  }
  const ops = new Map(a.devices.map(each => [each.device, each]));
  for (const each of b.devices) {
    ops.set(each.device, { ...each, ops: each.ops + (ops.get(each.device)?.ops ?? 0) });
  }
  return {
    ...a,
    devices: [...ops.values()].sort((one, other) => other.ops - one.ops),
    h2d: a.h2d + b.h2d,
    d2h: a.d2h + b.d2h,
    d2d: a.d2d + b.d2d,
    syncs: a.syncs + b.syncs,
    cpuCompute: a.cpuCompute + b.cpuCompute,
    bytes: a.bytes + b.bytes
  };
}
