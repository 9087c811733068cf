/**
 * Copies as arrows between lanes, gathered where they would touch: what is drawn as one arrow says how many and how many bytes.
 */
import type { ITrace } from '../model/trace';
import type { ILanes } from './lanes';
import { xOf, type IRange } from './scale';
import { buildTracks, search, type ITracks } from './tracks';

/** A row for each pair of lanes. */
export interface ICopies {
  readonly pairs: ReadonlyArray<readonly [from: number, to: number]>;
  readonly tracks: ITracks;
  /** bytes[i]: of the copies before position i. */
  readonly bytes: Float64Array;
}

export interface IArrow {
  readonly from: number;
  readonly to: number;
  readonly x: number;
  readonly count: number;
  readonly bytes: number;
  /** One of the copies: the first. */
  readonly copy: number;
}

export function buildCopies(trace: ITrace, lanes: ILanes, start: Float64Array): ICopies {
  const { op, from, bytes, length } = trace.copies;
  const order = Uint32Array.from({ length }, (_, i) => i).sort((a, b) => start[op[a]] - start[op[b]] || a - b);
  const ids = new Map<string, number>();
  const pairs: Array<[number, number]> = [];
  const row = new Int32Array(length).fill(-1);
  const times = new Float64Array(length);
  order.forEach((copy, i) => {
    const ends: [number, number] = [fromLane(trace, lanes, op[copy], from[copy]), lanes.laneOf[op[copy]] ?? -1];
    if (ends[0] >= 0 && ends[1] >= 0 && ends[0] !== ends[1]) {
      const id = ids.get(ends.join()) ?? pairs.push(ends) - 1;
      ids.set(ends.join(), id);
      row[i] = id;
      times[i] = start[op[copy]];
    }
  });
  const tracks = buildTracks(row, pairs.length, times, times);
  const sums = new Float64Array(tracks.order.length + 1);
  tracks.order.forEach((at, i) => {
    sums[i + 1] = sums[i] + bytes[order[at]];
    tracks.order[i] = order[at];
  });
  return { pairs, tracks, bytes: sums };
}

function fromLane(trace: ITrace, lanes: ILanes, op: number, device: number): number {
  return op < 0 ? -1 : lanes.find(trace.ops.thread[op], device);
}

/**
 * Copies of one pair of lanes within a stretch this wide (px) are one arrow, so that each has room for its label; stretches lie still while
 * the view pans.
 */
const GAP = 76;

/** The arrows in view. */
export function arrowsIn(copies: ICopies, range: IRange, width: number): IArrow[] {
  const arrows: IArrow[] = [];
  const perGap = ((range.end - range.begin) / width) * GAP;
  copies.pairs.forEach(([from, to], pair) => {
    const { start, order, rows } = copies.tracks;
    let at = search(start, range.begin, rows[pair], rows[pair + 1]);
    while (at < rows[pair + 1] && start[at] <= range.end) {
      const next = search(start, (Math.floor(start[at] / perGap) + 1) * perGap, at + 1, rows[pair + 1]);
      const x = xOf(range, width, start[at]);
      arrows.push({ from, to, x, count: next - at, bytes: copies.bytes[next] - copies.bytes[at], copy: order[at] });
      at = next;
    }
  });
  return arrows;
}
