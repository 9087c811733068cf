/**
 * Ids of cells that ran before devtrace was loaded: the kernel knows their number and text, the notebook their id.
 */
import type { ITrace } from './trace';

/** A code cell as the notebook shows it now. */
export interface IShownCell {
  readonly id: string;
  readonly count: number | null;
  readonly source: string;
}

/** The cells under all numbers that a page has shown them with: one that ran again has another number now. */
export class NumberedCells {
  private readonly _noted = new Map<string, IShownCell>();
  private readonly _counts = new Map<string, number>();

  /** Keeps in mind what a cell said when it was first seen under its number. */
  note(cells: readonly IShownCell[]): void {
    for (const cell of cells) {
      if (cell.count !== null && this._counts.get(cell.id) !== cell.count) {
        const key = `${cell.count} ${cell.id}`;
        this._counts.set(cell.id, cell.count);
        this._noted.delete(key);
        this._noted.set(key, cell);
      }
    }
  }

  /** The newest first: after a restart numbers come again. */
  get all(): IShownCell[] {
    return [...this._noted.values()].reverse();
  }
}

/** Give the cells of a trace that have no id the one of the shown cell with their number, if it has most of their lines. */
export function withCellIds(trace: ITrace, cells: readonly IShownCell[]): ITrace {
  const ids = idsOf(trace, cells);
  if (ids.size === 0) {
    return trace;
  }
  const strings = [...trace.strings, ...ids.values()];
  const added = new Map([...ids.keys()].map((cell, i) => [cell, trace.strings.length + i]));
  const filled = ({ file, cell, cell_id }: ITrace['sites'] | ITrace['sources']): Int32Array =>
    cell_id.map((id, row) => (strings[id] === '' ? (added.get(keyOf(file[row], cell[row])) ?? id) : id));
  return {
    ...trace,
    strings,
    sites: { ...trace.sites, cell_id: filled(trace.sites) },
    sources: { ...trace.sources, cell_id: filled(trace.sources) }
  };
}

function idsOf({ sources, strings }: ITrace, cells: readonly IShownCell[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (let row = 0; row < sources.length; row++) {
    const count = sources.cell[row];
    if (count >= 0 && strings[sources.cell_id[row]] === '') {
      const shown = cells.find(cell => cell.count === count && hasMostOf(cell.source, strings[sources.text[row]]));
      if (shown) {
        ids.set(keyOf(sources.file[row], count), shown.id);
      }
    }
  }
  return ids;
}

function keyOf(file: number, cell: number): string {
  return `${file} ${cell}`;
}

/** The code that ran has other lines for magics; of the rest the user may have edited some. */
function hasMostOf(source: string, ran: string): boolean {
  const lines = new Set(source.split('\n').map(line => line.trim()));
  const own = ran
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('get_ipython()'));
  return own.filter(line => lines.has(line)).length * 2 >= own.length;
}
