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

/** For each cell, by its id. Entries come oldest first: a newer trace of a line takes the place of an older one. */
export function stripesOf(entries: readonly IEntry[]): Map<string, ICellStripes> {
  const stripes = new Map<string, Map<number, IStripe>>();
  const marks = new Map<string, IMark[]>();
  for (const { outline, label } of entries) {
    const lines = linesOf(outline, label);
    for (const [cell, ofCell] of lines) {
      const known = stripes.get(cell) ?? new Map<number, IStripe>();
      ofCell.forEach((stripe, line) => known.set(line, stripe));
      stripes.set(cell, known);
      // What an older trace found in these lines is history.
      marks.set(
        cell,
        (marks.get(cell) ?? []).filter(({ place }) => !ofCell.has(place.line))
      );
    }
    for (const mark of marksOf(outline, label)) {
      marks.set(mark.place.cellId, [...(marks.get(mark.place.cellId) ?? []), mark]);
    }
  }
  const cells = new Set([...stripes.keys(), ...marks.keys()]);
  return new Map(
    [...cells].map(cell => [
      cell,
      {
        stripes: [...(stripes.get(cell)?.values() ?? [])].sort((a, b) => a.line - b.line),
        marks: marks.get(cell) ?? []
      }
    ])
  );
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
