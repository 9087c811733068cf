/**
 * A jump to another stretch of time that the eye can follow.
 */
import type { IRange } from '../layout/scale';

/** How long (ms) it takes. */
const TIME = 160;

export class Glide {
  constructor(
    private readonly _from: IRange,
    private readonly _to: IRange,
    private readonly _since: number
  ) {}

  isOver(now: number): boolean {
    return now - this._since >= TIME;
  }

  /** The stretch at a moment: quick at first, slow at the end. */
  at(now: number): IRange {
    if (this.isOver(now)) {
      return this._to;
    }
    const eased = 1 - (1 - Math.max(now - this._since, 0) / TIME) ** 3;
    const mix = (from: number, to: number): number => from + (to - from) * eased;
    return { begin: mix(this._from.begin, this._to.begin), end: mix(this._from.end, this._to.end) };
  }
}
