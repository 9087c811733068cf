/**
 * Everything that a timeline shows, as one value that is never changed, and the steps from one such value to the next. No DOM: the view
 * holds the newest value, takes steps as the user acts, and paints.
 */
import { NOTHING_PICKED, type IPicked } from '../model/picks';
import type { ITrace } from '../model/trace';
import { EVERYTHING, filterOps } from './filter';
import { flagsOf, type IFlag } from './flags';
import { momentAt, onAxis } from './folds';
import { closeTo, grown, revealing } from './reveal';
import { around, panned, zoomed, type IRange } from './scale';
import { buildStack, type IStack } from './stack';
import { buildTimeline, type Clock, type ITimeline } from './timeline';
import { buildTracks, type ITracks } from './tracks';

export interface ITimelineState {
  readonly timeline: ITimeline;
  readonly stack: IStack;
  /** Width of the canvas (px), labels included; 0 before it is known. */
  readonly width: number;
  /** The stretch of time in view. */
  readonly range: IRange;
  readonly picked: IPicked;
  readonly flags: readonly IFlag[];
  /** The op under the pointer, -1 for none. */
  readonly hovered: number;
  readonly query: string;
  /** The ops that match the query; null without a query. */
  readonly found: IFound | null;
}

interface IFound {
  readonly count: number;
  readonly tracks: ITracks;
}

export function startTimeline(trace: ITrace, picked: IPicked = NOTHING_PICKED): ITimelineState {
  const timeline = buildTimeline(trace, 'time');
  return {
    timeline,
    stack: buildStack(timeline),
    width: 0,
    range: timeline.whole,
    picked,
    flags: flagsOf(trace, picked.finding),
    hovered: -1,
    query: '',
    found: null
  };
}

export function resize(state: ITimelineState, width: number): ITimelineState {
  return width === state.width ? state : { ...state, width };
}

/** Width (px) of the labels at the left, for which narrow canvases have less room. */
export function gutterOf({ width }: ITimelineState): number {
  return width < NARROW ? 84 : 128;
}

const NARROW = 620;

/** Width (px) of the plot without the labels. */
export function plotWidth(state: ITimelineState): number {
  return Math.max(state.width - gutterOf(state), 1);
}

/** Show a stretch of time. */
export function show(state: ITimelineState, range: IRange): ITimelineState {
  return { ...state, range };
}

export function showAll(state: ITimelineState): ITimelineState {
  return show(state, state.timeline.whole);
}

/** Show less (factor below 1) or more, round a time that stays where it is; without one round the middle of the view. */
export function zoom(state: ITimelineState, factor: number, time = middleOf(state.range)): ITimelineState {
  return show(state, zoomed(state.range, state.timeline.whole, factor, time));
}

function middleOf({ begin, end }: IRange): number {
  return (begin + end) / 2;
}

/** Move the view by a share of its width. */
export function pan(state: ITimelineState, share: number): ITimelineState {
  const { range, timeline } = state;
  return show(state, panned(range, timeline.whole, share * (range.end - range.begin)));
}

/** Move the view so that a time is in its middle. */
export function centre(state: ITimelineState, time: number): ITimelineState {
  const half = (state.range.end - state.range.begin) / 2;
  return show(state, around(time - half, time + half, state.timeline.whole, 0));
}

/** Make the picked op or module fill the view. */
export function showPicked(state: ITimelineState): ITimelineState {
  const range = closeTo(state.timeline, state.picked.op, state.picked.module);
  return range ? show(state, range) : state;
}

/** Let the axis count time or ops, and show all. */
export function setClock(state: ITimelineState, clock: Clock): ITimelineState {
  const timeline = buildTimeline(state.timeline.trace, clock);
  return find({ ...state, timeline, stack: buildStack(timeline), range: timeline.whole }, state.query);
}

/** Go on with a longer trace of the same ops; a view of the whole, or of its end, follows. */
export function grow(state: ITimelineState, trace: ITrace): ITimelineState {
  const timeline = buildTimeline(trace, state.timeline.clock);
  const again = (time: number): number => onAxis(timeline.folds, momentAt(state.timeline.folds, time));
  const moved = ({ begin, end }: IRange): IRange => ({ begin: again(begin), end: again(end) });
  const range = grown(moved(state.range), moved(state.timeline.whole), timeline.whole);
  const flags = flagsOf(trace, state.picked.finding);
  return find({ ...state, timeline, stack: buildStack(timeline), range, flags }, state.query);
}

/** Look for ops by words; the ones that do not match fade. */
export function find(state: ITimelineState, query: string): ITimelineState {
  if (query.trim() === '') {
    return { ...state, query, found: null };
  }
  const ops = filterOps(state.timeline.trace, { ...EVERYTHING, text: query });
  return { ...state, query, found: { count: ops.length, tracks: tracksOf(state.timeline, ops) } };
}

function tracksOf({ lanes, start, end }: ITimeline, ops: Uint32Array): ITracks {
  const row = new Int32Array(lanes.laneOf.length).fill(-1);
  for (const op of ops) {
    row[op] = lanes.laneOf[op];
  }
  return buildTracks(row, lanes.lanes.length, start, end);
}

/** Take over what is picked, and bring a picked op into view: close enough to be seen where it belongs to a finding. */
export function pick(state: ITimelineState, picked: IPicked): ITimelineState {
  const { timeline, range } = state;
  const next = { ...state, picked, flags: flagsOf(timeline.trace, picked.finding) };
  const target = picked.op < 0 ? null : revealing(timeline, range, plotWidth(state), picked.op, picked.finding >= 0);
  return target ? show(next, target) : next;
}

export function hover(state: ITimelineState, op: number): ITimelineState {
  return op === state.hovered ? state : { ...state, hovered: op };
}
