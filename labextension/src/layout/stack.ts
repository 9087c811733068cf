/**
 * The rows of a timeline, top to bottom: for each thread its name (when there are several), its calls, its lanes. In a job they stand
 * below the ranks that they are of, and of a group that is not opened one rank is there.
 */
import type { ITimeline } from './timeline';

export interface IStackRow {
  readonly kind: 'ranks' | 'rank' | 'thread' | 'calls' | 'lane';
  /** An index into the groups of ranks, a rank, a thread's id, or an index into the timeline's call rows or lanes. */
  readonly index: number;
  readonly y: number;
  readonly height: number;
}

export interface IStack {
  readonly rows: readonly IStackRow[];
  readonly height: number;
  /** By lane: its row; undefined where its rank is not shown. */
  readonly lanes: ReadonlyArray<IStackRow | undefined>;
  readonly shownLanes: number;
  /** By rank, what it takes: its own rows, or those of the rank that stands for it. */
  readonly ranks: ReadonlyMap<number, IStretch>;
}

/** From one y to another. */
export interface IStretch {
  readonly top: number;
  readonly bottom: number;
}

const RANKS = 24;
const THREAD = 22;
const CALLS = 17;
const LANE = 26;
/** Room for an arrow and its label between two lanes. */
export const LANE_GAP = 16;
const THREAD_GAP = 10;
/** From this many lanes on they stand closer, and arrows have no labels. */
const MANY = 9;

const NONE: ReadonlySet<number> = new Set();

/** `opened` are the groups of which every rank is shown, each by its lowest rank. */
export function buildStack(timeline: ITimeline, opened: ReadonlySet<number> = NONE): IStack {
  const { groups } = timeline.ranks;
  const lanesOf = lanesByRank(timeline);
  const shown = groups.flatMap(group => (opened.has(group.ranks[0]) ? group.ranks : [group.shown]));
  const count = [...(groups.length > 0 ? [-1, ...shown] : lanesOf.keys())]
    .map(rank => lanesOf.get(rank)?.length ?? 0)
    .reduce((sum, each) => sum + each, 0);
  const rows = new Rows(timeline, count >= MANY);
  const ranks = new Map<number, IStretch>();
  if (groups.length === 0) {
    rows.addLanes([...lanesOf.values()].flat());
  } else {
    rows.addLanes(lanesOf.get(-1) ?? []);
  }
  groups.forEach((group, index) => {
    const top = rows.addTitle('ranks', index);
    const isOpen = opened.has(group.ranks[0]);
    for (const rank of isOpen ? group.ranks : [group.shown]) {
      const own = isOpen ? rows.addTitle('rank', rank) : top;
      rows.addLanes(lanesOf.get(rank) ?? []);
      for (const each of isOpen ? [rank] : group.ranks) {
        ranks.set(each, { top: own, bottom: rows.bottom });
      }
    }
  });
  return { ...rows.stack, shownLanes: count, ranks };
}

/** Indexes of lanes by the rank of their thread; -1: of none. */
function lanesByRank({ lanes, ranks, trace }: ITimeline): Map<number, number[]> {
  const found = new Map<number, number[]>();
  lanes.lanes.forEach(({ thread }, index) => {
    const rank = ranks.groups.length > 0 ? (trace.threads.rank[thread] ?? -1) : -1;
    const before = found.get(rank);
    if (before) {
      before.push(index);
    } else {
      found.set(rank, [index]);
    }
  });
  return found;
}

class Rows {
  private readonly _rows: IStackRow[] = [];
  private readonly _byLane: Array<IStackRow | undefined>;
  private readonly _callsOf = new Map<number, number[]>();
  private _y = 4;

  constructor(
    private readonly _timeline: ITimeline,
    private readonly _isClose: boolean
  ) {
    this._byLane = new Array<IStackRow | undefined>(_timeline.lanes.lanes.length).fill(undefined);
    _timeline.calls.rows.forEach(({ thread }, index) => {
      this._callsOf.set(thread, [...(this._callsOf.get(thread) ?? []), index]);
    });
  }

  get stack(): Pick<IStack, 'rows' | 'height' | 'lanes'> {
    return { rows: this._rows, height: this._y + 2, lanes: this._byLane };
  }

  /** Where the last row ends. */
  get bottom(): number {
    const last = this._rows[this._rows.length - 1];
    return last.y + last.height;
  }

  /** Add the title of a group or of a rank; the result is where it begins. */
  addTitle(kind: 'ranks' | 'rank', index: number): number {
    this._y += kind === 'ranks' && this._rows.length > 0 ? THREAD_GAP : 0;
    return this._add(kind, index, kind === 'ranks' ? RANKS : THREAD, 0).y;
  }

  /** Add some lanes with the names and calls of their threads. */
  addLanes(indexes: readonly number[]): void {
    const { lanes } = this._timeline.lanes;
    const isNamed = new Set(indexes.map(index => lanes[index].thread)).size > 1;
    let thread = -2;
    for (const index of indexes) {
      if (lanes[index].thread !== thread) {
        this._y += thread === -2 ? 0 : THREAD_GAP;
        thread = lanes[index].thread;
        this._addThread(thread, isNamed);
      }
      this._byLane[index] = this._add('lane', index, this._isClose ? 18 : LANE, this._isClose ? 3 : LANE_GAP);
    }
  }

  private _addThread(thread: number, isNamed: boolean): void {
    if (isNamed) {
      this._add('thread', thread, THREAD, 0);
    }
    for (const index of this._callsOf.get(thread) ?? []) {
      this._add('calls', index, CALLS, 1);
    }
    this._y += 6;
  }

  private _add(kind: IStackRow['kind'], index: number, height: number, gap: number): IStackRow {
    const row = { kind, index, y: this._y, height };
    this._rows.push(row);
    this._y += height + gap;
    return row;
  }
}

/** Arrows say how many bytes only where the lanes leave room. */
export function hasRoomForLabels(stack: IStack): boolean {
  return stack.shownLanes < MANY;
}

/** The rows that touch [top, bottom]. */
export function rowsIn(stack: IStack, top: number, bottom: number): readonly IStackRow[] {
  const from = lowerBound(stack.rows, row => row.y + row.height >= top);
  const to = lowerBound(stack.rows, row => row.y > bottom);
  return stack.rows.slice(from, to);
}

function lowerBound(rows: readonly IStackRow[], isReached: (row: IStackRow) => boolean): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isReached(rows[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
