/**
 * The rows of the ops table: which ops, in which order, and which of them are in view.
 */
import { moduleOf, type ITrace } from '../model/trace';
import { filterOps, type IFilter } from './filter';

export type SortKey = 'id' | 'name' | 'device' | 'took' | 'module' | 'line' | 'phase';

export interface ISorting {
  readonly key: SortKey;
  readonly falling: boolean;
}

export function tableRows(trace: ITrace, filter: IFilter, sorting: ISorting): Uint32Array {
  const ops = filterOps(trace, filter);
  const keyOf = keys(trace, sorting.key);
  const sorted = sorting.key === 'id' ? ops : ops.toSorted((a, b) => keyOf(a) - keyOf(b));
  return sorting.falling ? sorted.toReversed() : sorted;
}

/** What ops are sorted by. */
function keys(trace: ITrace, key: SortKey): (op: number) => number {
  const { device, duration, name, phase, site } = trace.ops;
  const rank = key === 'name' || key === 'phase' || key === 'module' || key === 'line' ? ranks(trace.strings) : [];
  const known: Record<SortKey, (op: number) => number> = {
    id: op => op,
    name: op => rank[name[op]],
    device: op => device[op],
    took: op => duration[op],
    phase: op => rank[phase[op]],
    module: op => rank[trace.modules.path[moduleOf(trace, op)]] ?? -1,
    line: op => (site[op] < 0 ? -1 : rank[trace.sites.file[site[op]]] * 2 ** 31 + trace.sites.line[site[op]])
  };
  return known[key];
}

/** The rank of each string among all strings in the order of their letters. */
function ranks(strings: readonly string[]): number[] {
  const order = strings.map((_, i) => i).sort((a, b) => (strings[a] < strings[b] ? -1 : 1));
  const rank = new Array<number>(strings.length);
  order.forEach((string, i) => (rank[string] = i));
  return rank;
}

/** Browsers cut elements that are much higher than this (px): a longer table scrolls faster than its rows are high. */
const HIGHEST = 12_000_000;

/** A window on rows of equal height, however many there are. */
export class Scroll {
  readonly height: number;

  constructor(
    readonly count: number,
    readonly rowHeight: number,
    readonly viewHeight: number
  ) {
    this.height = Math.min(count * rowHeight, HIGHEST);
  }

  /** The row at the top of the view, with its part that is above. */
  rowAt(scrollTop: number): number {
    return this._room <= 0 ? 0 : (Math.min(scrollTop, this._room) / this._room) * this._lastTop;
  }

  scrollTopOf(row: number): number {
    return this._lastTop <= 0 ? 0 : (Math.min(row, this._lastTop) / this._lastTop) * this._room;
  }

  private get _room(): number {
    return this.height - this.viewHeight;
  }

  private get _lastTop(): number {
    return this.count - this.viewHeight / this.rowHeight;
  }
}
