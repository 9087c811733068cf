/**
 * All of a timeline that does not depend on the view: made once for a trace and a clock, read for every frame.
 */
import { waitingOps } from '../model/syncs';
import { PHASES, type ITrace } from '../model/trace';
import { buildCalls, type ICallRows } from './calls';
import { buildCopies, type ICopies } from './copies';
import { makeHeader, type IHeader } from './header';
import { buildLanes, type ILanes } from './lanes';
import { foldsOf, onAxis, type IFold } from './folds';
import type { IRange } from './scale';
import { buildTracks, type ITracks } from './tracks';

/** The unit of the horizontal axis: nanoseconds without those of folds, or ops (each as wide as the next). */
export type Clock = 'time' | 'order';

/** Beside the first op: an instant has room to be seen in, a few ops fill the width. */
const LEAST_AIR: Readonly<Record<Clock, number>> = { time: 4, order: 0.1 };

export interface ITimeline {
  readonly trace: ITrace;
  readonly clock: Clock;
  readonly whole: IRange;
  /** By op, on the clock. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** Idle stretches that are drawn short, in their order. */
  readonly folds: readonly IFold[];
  readonly lanes: ILanes;
  readonly calls: ICallRows;
  readonly copies: ICopies;
  readonly header: IHeader;
  /** The ops that wait for a device, a row for each lane; without length. */
  readonly syncs: ITracks;
  /** A row for each of PHASES; a span is a run of ops of that phase. */
  readonly phases: ITracks;
}

export function buildTimeline(trace: ITrace, clock: Clock): ITimeline {
  const { start, end, folds } = clock === 'time' ? times(trace) : positions(trace.ops.length);
  const lanes = buildLanes(trace, start, end);
  const phases = buildPhases(trace, start, end);
  return {
    trace,
    clock,
    start,
    end,
    folds,
    whole: wholeOf(start, end, clock),
    lanes,
    calls: buildCalls(trace, start, end),
    copies: buildCopies(trace, lanes, start),
    syncs: buildSyncs(trace, lanes, start),
    phases,
    header: makeHeader(
      (trace.findings ?? []).some(({ op }) => op >= 0),
      phases.order.length > 0
    )
  };
}

type Ops = Pick<ITimeline, 'start' | 'end' | 'folds'>;

/** An op that raised has no duration: it ends where it starts. */
function times(trace: ITrace): Ops {
  const { start, duration } = trace.ops;
  const end = new Float64Array(start.length);
  for (let op = 0; op < start.length; op++) {
    end[op] = start[op] + Math.max(0, duration[op]);
  }
  const folds = foldsOf(start, end);
  const moved = (times: Float64Array): Float64Array => (folds.length > 0 ? times.map(t => onAxis(folds, t)) : times);
  return { start: moved(start), end: moved(end), folds };
}

function positions(length: number): Ops {
  const from = (first: number): Float64Array => Float64Array.from({ length }, (_, op) => op + first);
  return { start: from(0), end: from(1), folds: [] };
}

/** From the first op to the last end, with a little air on both sides: what raised at the very end has room there. */
function wholeOf(start: Float64Array, end: Float64Array, clock: Clock): IRange {
  let last = 0;
  for (const time of end) {
    last = time > last ? time : last;
  }
  const first = start.length > 0 ? start[0] : 0;
  const air = Math.max((last - first) * 0.015, LEAST_AIR[clock]);
  return { begin: first - air, end: last + 2 * air };
}

function buildSyncs(trace: ITrace, { lanes, laneOf }: ILanes, start: Float64Array): ITracks {
  const row = new Int32Array(start.length).fill(-1);
  for (const op of waitingOps(trace)) {
    row[op] = laneOf[op];
  }
  return buildTracks(row, lanes.length, start, start);
}

/** Ops of one phase one after the other are one span. */
function buildPhases(trace: ITrace, start: Float64Array, end: Float64Array): ITracks {
  const rowOf = trace.strings.map(text => (PHASES as readonly string[]).indexOf(text));
  const { phase, length } = trace.ops;
  const rows: number[] = [];
  const begins: number[] = [];
  const ends: number[] = [];
  for (let op = 0; op < length; op++) {
    if (op === 0 || phase[op] !== phase[op - 1]) {
      rows.push(rowOf[phase[op]]);
      begins.push(start[op]);
      ends.push(end[op]);
    } else {
      ends[ends.length - 1] = Math.max(ends[ends.length - 1], end[op]);
    }
  }
  return buildTracks(Int32Array.from(rows), PHASES.length, begins, ends);
}
