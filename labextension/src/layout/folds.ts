/**
 * Long stretches in which no op ran, drawn short: the axis that they leave, and the way between its units and nanoseconds.
 */
import type { IRange } from './scale';
import { timeTicks, type ITick } from './units';

/** An idle stretch, which is [begin, end] on the axis. */
export interface IFold extends IRange {
  /** When it began and ended (ns). */
  readonly from: number;
  readonly to: number;
}

/** In shorter ones (ns) Python works, between one op and the next. */
const LEAST = 100e6;
/** A longer one than this share of all that is drawn beside it leaves that no room. */
const SHARE = 0.5;
/** The width of each, as a share of what is drawn at its length; all of them take no more than MOST. */
const WIDTH = 0.04;
const MOST = 0.3;
/** An axis on which nothing has a length still has room for its folds. */
const NARROWEST = 8;

/** Find what to fold of ops in the order of their starts. */
export function foldsOf(start: Float64Array, end: Float64Array): IFold[] {
  const [idle, last] = idleStretches(start, end);
  const { long, rest } = idle.length > 0 ? longest(idle, last - start[0]) : { long: [], rest: 0 };
  const width = Math.max(rest * Math.min(WIDTH, MOST / long.length), NARROWEST);
  let saved = 0;
  return long
    .sort((a, b) => a.begin - b.begin)
    .map(({ begin: from, end: to }) => {
      const begin = from - saved;
      saved += to - from - width;
      return { begin, end: begin + width, from, to };
    });
}

/** As many as are each long beside what is left without them all, and how much that is. */
function longest(idle: readonly IRange[], length: number): { long: IRange[]; rest: number } {
  const stretches = [...idle].sort((a, b) => lengthOf(b) - lengthOf(a));
  let [left, count, rest] = [length, 0, length];
  stretches.forEach((stretch, i) => {
    left -= lengthOf(stretch);
    if (lengthOf(stretch) > SHARE * left) {
      [count, rest] = [i + 1, left];
    }
  });
  return { long: stretches.slice(0, count), rest };
}

function lengthOf({ begin, end }: IRange): number {
  return end - begin;
}

/** What is worth to be looked at, and when the last op ended. */
function idleStretches(start: Float64Array, end: Float64Array): [IRange[], number] {
  const found: IRange[] = [];
  let last = Infinity;
  for (let op = 0; op < start.length; op++) {
    if (start[op] - last > LEAST) {
      found.push({ begin: last, end: start[op] });
    }
    last = op === 0 ? end[op] : Math.max(last, end[op]);
  }
  return [found, last];
}

/** Where a moment (ns) is on the axis. */
export function onAxis(folds: readonly IFold[], time: number): number {
  const fold = folds.findLast(({ from }) => from <= time);
  return fold ? moved(time, fold.from, fold.to, fold.begin, fold.end) : time;
}

/** The moment (ns) of a point of the axis. */
export function momentAt(folds: readonly IFold[], point: number): number {
  const fold = folds.findLast(({ begin }) => begin <= point);
  return fold ? moved(point, fold.begin, fold.end, fold.from, fold.to) : point;
}

/** From a stretch into another by its share, behind it by the distance. */
function moved(value: number, from: number, to: number, into: number, end: number): number {
  return value < to ? into + ((value - from) / (to - from)) * (end - into) : end + value - to;
}

/** Round times on the axis, at most `most` of them: between the folds, at whose edges none is. */
export function foldedTicks(folds: readonly IFold[], { begin, end }: IRange, most: number): ITick[] {
  const edges = [begin, ...folds.flatMap(fold => [fold.begin, fold.end]), end];
  const ticks: ITick[] = [];
  for (let at = 0; at < edges.length; at += 2) {
    const [from, to] = [Math.max(edges[at], begin), Math.min(edges[at + 1], end)];
    if (to > from) {
      const after = momentAt(folds, from);
      const share = (to - from) / (end - begin);
      const part = timeTicks(after, after + to - from, most * share);
      ticks.push(...part.map(({ time, label }) => ({ time: from + time - after, label })));
    }
  }
  return ticks;
}
