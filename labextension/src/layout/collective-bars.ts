/**
 * Where the bars of collectives lie among the rows of a timeline.
 */
import { rankOfOp } from './ranks';
import type { IStack, IStretch } from './stack';
import type { ITimeline } from './timeline';

/** How far down a collective's bar reaches: over all ranks that took part; null where none of them is shown. */
export function stretchOf({ trace, collectives }: ITimeline, { ranks }: IStack, collective: number): IStretch | null {
  let [top, bottom] = [Infinity, -Infinity];
  for (const op of collectives.ops[collective]) {
    const own = ranks.get(rankOfOp(trace, op));
    top = Math.min(top, own?.top ?? Infinity);
    bottom = Math.max(bottom, own?.bottom ?? -Infinity);
  }
  return top < bottom ? { top, bottom } : null;
}

/** The op that a click on a collective's bar is for: of the rank that came last, for which all others waited, of those that are shown. */
export function lastToCome({ collectives, lanes }: ITimeline, stack: IStack, collective: number): number {
  return collectives.ops[collective].findLast(op => stack.lanes[lanes.laneOf[op]] !== undefined) ?? -1;
}
