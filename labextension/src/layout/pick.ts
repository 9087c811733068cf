/**
 * Finds the item under a point of the timeline: the painters' geometry, read backwards.
 */
import { arrowsIn } from './copies';
import { timeOf, xOf, type IRange } from './scale';
import { rowsIn, type IStack } from './stack';
import type { ITimeline } from './timeline';
import { search, type ITracks } from './tracks';

export type Picked =
  { readonly kind: 'op'; readonly op: number } | { readonly kind: 'call'; readonly call: number } | null;

interface IView {
  readonly timeline: ITimeline;
  readonly stack: IStack;
  readonly range: IRange;
  readonly width: number;
}

/** A pointer may miss an item by this much (px). */
const REACH = 4;

/** `y` counts from the top of the first row, scrolled or not. */
export function pickAt(view: IView, x: number, y: number): Picked {
  for (const row of rowsIn(view.stack, y, y)) {
    const tracks = row.kind === 'lane' ? view.timeline.lanes.tracks : view.timeline.calls.tracks;
    const item = row.kind === 'thread' ? -1 : nearest(view, tracks, row.index, x);
    if (item >= 0) {
      return row.kind === 'lane' ? { kind: 'op', op: item } : { kind: 'call', call: item };
    }
  }
  return pickArrow(view, x, y);
}

/** The span under x, else one that ends or starts within reach. */
function nearest(view: IView, tracks: ITracks, row: number, x: number): number {
  const { range, width } = view;
  const next = search(tracks.start, timeOf(range, width, x), tracks.rows[row], tracks.rows[row + 1], true);
  const candidates = [next - 1, next].filter(at => at >= tracks.rows[row] && at < tracks.rows[row + 1]);
  const miss = (at: number): number =>
    Math.max(xOf(range, width, tracks.start[at]) - x, x - xOf(range, width, tracks.end[at]), 0);
  const best = candidates.sort((a, b) => miss(a) - miss(b)).find(at => miss(at) <= REACH);
  return best === undefined ? -1 : tracks.order[best];
}

function pickArrow(view: IView, x: number, y: number): Picked {
  const { stack, timeline } = view;
  for (const arrow of arrowsIn(timeline.copies, view.range, view.width)) {
    const [top, bottom] = [stack.lanes[arrow.from], stack.lanes[arrow.to]].sort((a, b) => a.y - b.y);
    if (Math.abs(arrow.x - x) <= REACH && y >= top.y && y <= bottom.y + bottom.height) {
      return { kind: 'op', op: timeline.trace.copies.op[arrow.copy] };
    }
  }
  return null;
}
