/**
 * The stretch of time in view and the pixels it is shown on. `time` and `x` are the two words used for the two sides.
 */

export interface IRange {
  readonly begin: number;
  readonly end: number;
}

/** Closest zoom: this many units (ns, or ops) across the whole view. Closer, neighbouring times could not be told apart. */
const CLOSEST = 8;

export function xOf(range: IRange, width: number, time: number): number {
  return ((time - range.begin) / (range.end - range.begin)) * width;
}

export function timeOf(range: IRange, width: number, x: number): number {
  return range.begin + (x / width) * (range.end - range.begin);
}

/** `range` made shorter (factor below 1) or longer round a time that stays where it is. */
export function zoomed(range: IRange, whole: IRange, factor: number, time: number): IRange {
  const length = range.end - range.begin;
  const wanted = Math.min(Math.max(length * factor, CLOSEST), whole.end - whole.begin);
  const share = (time - range.begin) / length;
  return within({ begin: time - share * wanted, end: time + (1 - share) * wanted }, whole);
}

export function panned(range: IRange, whole: IRange, time: number): IRange {
  return within({ begin: range.begin + time, end: range.end + time }, whole);
}

/** The range moved, not shortened, so that it lies in the whole. */
function within(range: IRange, whole: IRange): IRange {
  const length = Math.min(range.end - range.begin, whole.end - whole.begin);
  const begin = Math.min(Math.max(range.begin, whole.begin), whole.end - length);
  return { begin, end: begin + length };
}

/** A range that shows [begin, end] with room on both sides, as a share of its length. */
export function around(begin: number, end: number, whole: IRange, room: number): IRange {
  const length = Math.max(end - begin, CLOSEST);
  return within({ begin: begin - length * room, end: begin + length * (1 + room) }, whole);
}
