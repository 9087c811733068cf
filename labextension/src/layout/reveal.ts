/**
 * Finds the stretch of time in which a picked op or module can be seen.
 */
import { around, type IRange } from './scale';
import type { ITimeline } from './timeline';

/** Zooming to an op shows this many before and after it. */
const NEIGHBOURS = 6;
/** An op narrower than this (px) is a speck among its neighbours. */
const SPECK = 2;
/** With fewer ops a speck has no neighbours that it could be lost among. */
const FEW = 500;

/** Room for an op with its neighbours, or for the first call of a module; null for what is nowhere on the timeline. */
export function closeTo(timeline: ITimeline, op: number, module: number): IRange | null {
  const { start, end, calls, whole, trace } = timeline;
  if (op >= 0) {
    const from = start[Math.max(op - NEIGHBOURS, 0)];
    return around(from, end[Math.min(op + NEIGHBOURS, end.length - 1)], whole, 0.1);
  }
  const at = calls.tracks.order.findIndex(call => trace.calls.module[call] === module);
  return module >= 0 && at >= 0 ? around(calls.tracks.start[at], calls.tracks.end[at], whole, 0.1) : null;
}

/**
 * Find a range that has an op in view; null to stay. It is the same zoom nearby where that is enough. Where the op would be a speck and
 * `close` is asked for, it is closer: with the op's neighbours if they leave room for it.
 */
export function revealing(
  timeline: ITimeline,
  range: IRange,
  width: number,
  op: number,
  close: boolean
): IRange | null {
  const { whole, trace } = timeline;
  const [begin, end] = [timeline.start[op], timeline.end[op]];
  const isSpeck = ({ begin: from, end: to }: IRange): boolean => ((end - begin) / (to - from)) * width < SPECK;
  if (close && isSpeck(range) && trace.ops.length > FEW) {
    const near = closeTo(timeline, op, -1);
    return near && !isSpeck(near) ? near : around(begin, end, whole, 20);
  }
  const half = (range.end - range.begin) / 2;
  const isIn = begin >= range.begin && end <= range.end;
  return isIn ? null : around(begin - half, begin + half, whole, 0);
}

/** The view of a trace that grew: of the whole it is the new whole, of the end the new end, else what it was. */
export function grown(range: IRange, before: IRange, whole: IRange): IRange {
  if (range.begin <= before.begin && range.end >= before.end) {
    return whole;
  }
  return range.end >= before.end ? { begin: whole.end - (range.end - range.begin), end: whole.end } : range;
}
