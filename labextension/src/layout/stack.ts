/**
 * The rows of a timeline, top to bottom: for each thread its name (when there are several), its calls, its lanes.
 */
import type { ITimeline } from './timeline';

export interface IStackRow {
  readonly kind: 'thread' | 'calls' | 'lane';
  /** A thread's id, or an index into the timeline's call rows or lanes. */
  readonly index: number;
  readonly y: number;
  readonly height: number;
}

export interface IStack {
  readonly rows: readonly IStackRow[];
  readonly height: number;
  /** By lane: its row. */
  readonly lanes: readonly IStackRow[];
}

const THREAD = 22;
const CALLS = 17;
const LANE = 26;
/** Room for an arrow and its label between two lanes. */
export const LANE_GAP = 16;
const THREAD_GAP = 10;
/** From this many lanes on they stand closer, and arrows have no labels. */
const MANY = 9;

export function buildStack(timeline: ITimeline): IStack {
  const { lanes, calls } = timeline;
  const isNamed = new Set(lanes.lanes.map(lane => lane.thread)).size > 1;
  const isClose = lanes.lanes.length >= MANY;
  const rows: IStackRow[] = [];
  let y = 4;
  let nextCalls = 0;
  const add = (kind: IStackRow['kind'], index: number, height: number, gap: number): void => {
    rows.push({ kind, index, y, height });
    y += height + gap;
  };
  lanes.lanes.forEach(({ thread }, lane) => {
    if (lane === 0 || thread !== lanes.lanes[lane - 1].thread) {
      y += lane === 0 ? 0 : THREAD_GAP;
      if (isNamed) {
        add('thread', thread, THREAD, 0);
      }
      for (; nextCalls < calls.rows.length && calls.rows[nextCalls].thread <= thread; nextCalls++) {
        add('calls', nextCalls, CALLS, 1);
      }
      y += 6;
    }
    add('lane', lane, isClose ? 18 : LANE, isClose ? 3 : LANE_GAP);
  });
  return { rows, height: y + 2, lanes: rows.filter(row => row.kind === 'lane') };
}

/** Arrows say how many bytes only where the lanes leave room. */
export function hasRoomForLabels(stack: IStack): boolean {
  return stack.lanes.length < MANY;
}

/** The rows that touch [top, bottom]. */
export function rowsIn({ rows }: IStack, top: number, bottom: number): readonly IStackRow[] {
  return rows.filter(({ y, height }) => y + height >= top && y <= bottom);
}
