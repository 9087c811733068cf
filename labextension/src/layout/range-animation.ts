/**
 * A jump to another stretch of time, in steps that the eye can follow.
 */
import type { IRange } from './scale';

/** A jump takes this long (ms). */
const DURATION = 160;

export interface IRangeAnimation {
  readonly from: IRange;
  readonly to: IRange;
  /** The moment (ms) at which it began. */
  readonly since: number;
}

export function isOver({ since }: IRangeAnimation, now: number): boolean {
  return now - since >= DURATION;
}

/** The range at a moment: it changes quickly at first, slowly at the end. */
export function rangeAt(animation: IRangeAnimation, now: number): IRange {
  const { from, to, since } = animation;
  if (isOver(animation, now)) {
    return to;
  }
  const eased = 1 - (1 - Math.max(now - since, 0) / DURATION) ** 3;
  const mix = (first: number, last: number): number => first + (last - first) * eased;
  return { begin: mix(from.begin, to.begin), end: mix(from.end, to.end) };
}
