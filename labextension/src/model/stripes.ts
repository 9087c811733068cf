/**
 * Stripes beside the lines of each cell: the ledger of the newest trace that ran them, by line, and the spans of its findings.
 */
import type { Severity } from './findings';
import { grouped } from './groups';
import { addCounts, countsBySite, type ILedgerCounts } from './ledger';
import { spanOfSite, textOfCell, type ISourceSpan } from './source-span';
import type { IEntry } from './entries';
import { deviceName, type ITrace } from './trace';

export interface IStripe {
  readonly line: number;
  /** The traced text of the line, null when the trace does not hold it. */
  readonly text: string | null;
  /** The name of the trace that it is from: `In[7]`. */
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
  readonly span: ISourceSpan;
  readonly severity: Severity;
  readonly message: string;
  readonly label: string;
}

export interface ICellStripes {
  readonly stripes: readonly IStripe[];
  readonly marks: readonly IMark[];
}

/** One cell as known so far, while the traces are gone through from the newest to the oldest. */
interface IKnown {
  /** The cell's text in the newest trace that touched it; traces of another text say nothing of this one. */
  readonly text: string | null;
  readonly lines: Map<number, IStripe>;
  readonly marks: IMark[];
  /** True once the newest run of the cell itself is among them: its earlier runs no longer count. */
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

function add(cells: Map<string, IKnown>, { outline, label, cell: run, hasRunSince }: IEntry): void {
  const lines = hasRunSince ? new Map<string, Map<number, IStripe>>() : linesOf(outline, label);
  const marks = hasRunSince ? [] : marksOf(outline, label);
  for (const cell of new Set([
    ...lines.keys(),
    ...marks.map(({ span }) => span.cellId),
    ...(run === '' ? [] : [run])
  ])) {
    const text = textOfCell(outline, cell);
    const known = cells.get(cell) ?? { text, lines: new Map<number, IStripe>(), marks: [], over: false };
    cells.set(cell, known);
    if (!known.over && (text === null || known.text === null || text === known.text)) {
      // A finding in a line that has run since no longer counts.
      known.marks.push(...marks.filter(({ span }) => span.cellId === cell && !known.lines.has(span.line)));
      for (const [line, stripe] of lines.get(cell) ?? []) {
        if (!known.lines.has(line)) {
          known.lines.set(line, stripe);
        }
      }
    }
    known.over ||= cell === run;
  }
}

function marksOf(trace: ITrace, label: string): IMark[] {
  return (trace.findings ?? [])
    .filter(({ site }) => site >= 0)
    .map(({ site, severity, message }) => ({ span: spanOfSite(trace, site), severity, message, label }))
    .filter(({ span }) => span.cellId !== '');
}

/** By cell and line. */
function linesOf(trace: ITrace, label: string): Map<string, Map<number, IStripe>> {
  const { sites, strings } = trace;
  const cellOf = (site: number): string => (site < 0 ? '' : strings[sites.cell_id[site]]);
  const counts = countsBySite(trace);
  const inCells = [...counts.keys()].filter(site => cellOf(site) !== '');
  const cells = new Map<string, Map<number, IStripe>>();
  for (const [cell, inCell] of grouped(inCells, cellOf)) {
    const stripes = [...grouped(inCell, site => sites.line[site])].map(([line, onLine]) => {
      const sum = addCounts(onLine.map(site => counts.get(site)).filter(known => known !== undefined));
      return sum ? ([[line, stripeOf(trace, label, onLine[0], sum)]] as const) : [];
    });
    cells.set(cell, new Map(stripes.flat()));
  }
  return cells;
}

function stripeOf(trace: ITrace, label: string, site: number, counts: ILedgerCounts): IStripe {
  const { ops, ...others } = counts;
  const { line, text } = spanOfSite(trace, site);
  const devices = [...ops].map((count, device) => ({
    device: deviceName(trace, device),
    ops: count,
    simulated: trace.devices.simulated[device] === 1
  }));
  return { ...others, line, text, label, devices: devices.filter(each => each.ops > 0).sort((a, b) => b.ops - a.ops) };
}
