/**
 * Points of a timeline's canvas (px from its corner), and what lies there.
 */
import { pinsIn, type IPin } from './flags';
import { isWithin } from './header';
import { pickAt, type Picked } from './pick';
import type { IPoint } from './point';
import { timeOf, xOf } from './scale';
import { gutterOf, plotWidth, type ITimelineState } from './timeline-state';

/** A click this near (px) to a pin is meant for it. */
const NEAR = 8;

/** The time at an x of the plot; left of it, the first in view. */
export function timeAt(state: ITimelineState, x: number): number {
  return timeOf(state.range, plotWidth(state), Math.max(x - gutterOf(state), 0));
}

/** The time at an x of the minimap. */
export function minimapTime(state: ITimelineState, x: number): number {
  return timeOf(state.timeline.whole, plotWidth(state), x - gutterOf(state));
}

export function isOnMinimap({ timeline }: ITimelineState, { y }: IPoint): boolean {
  return isWithin(timeline.header.minimap, y);
}

/** The op or call under a point, where the rows are scrolled down by so many pixels. */
export function itemAt(state: ITimelineState, { x, y }: IPoint, scrolled: number): Picked {
  const { timeline, stack, range } = state;
  const { height } = timeline.header;
  const gutter = gutterOf(state);
  if (x < gutter || y < height) {
    return null;
  }
  return pickAt({ timeline, stack, range, width: plotWidth(state) }, x - gutter, y - height + scrolled);
}

/** The finding whose pin is under a point, -1 for none. */
export function findingAt(state: ITimelineState, { x, y }: IPoint): number {
  const pins = isWithin(state.timeline.header.flags, y) ? pinsOf(state) : [];
  return pins.find(pin => Math.abs(pin.x + gutterOf(state) - x) <= NEAR)?.finding ?? -1;
}

export function pinsOf(state: ITimelineState): IPin[] {
  return pinsIn(state.flags, state.timeline.start, state.range, plotWidth(state));
}

/** Find the `scrollTop` at which an op's lane can be seen in a plot of this height; `scrolled` where it can be already. */
export function scrollToOp({ timeline, stack }: ITimelineState, op: number, scrolled: number, height: number): number {
  const row = stack.lanes[timeline.lanes.laneOf[op]];
  const room = height - timeline.header.height;
  return row.y < scrolled || row.y + row.height > scrolled + room ? row.y - room / 2 : scrolled;
}

/** The middle of an op that is in view, where the rows are scrolled down by so many pixels; null for one that is not. */
export function pointOfOp(state: ITimelineState, op: number, scrolled: number, height: number): IPoint | null {
  const { timeline, stack, range } = state;
  const row = stack.lanes[timeline.lanes.laneOf[op]];
  const x = xOf(range, plotWidth(state), (timeline.start[op] + timeline.end[op]) / 2);
  const y = row.y + row.height / 2 - scrolled;
  const isIn = x >= 0 && x <= plotWidth(state) && y >= 0 && y + timeline.header.height <= height;
  return isIn ? { x: gutterOf(state) + x, y: timeline.header.height + y } : null;
}
