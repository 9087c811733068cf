/**
 * Room to count in while a row is painted: one pair of arrays for all rows and frames, as making them anew each time keeps the garbage
 * collector busy in the middle of a pan.
 */
import { coverage, type ITracks } from '../layout/tracks';
import type { IFrame } from './context';

export interface IColumns {
  /** By device pixel: how much of it is covered, and how many spans begin in it. */
  readonly share: Float32Array;
  readonly count: Uint32Array;
}

let share = new Float32Array(4096);
let count = new Uint32Array(4096);

/** Empty columns, good until the next call. */
export function emptyColumns(length: number): IColumns {
  if (length > share.length) {
    share = new Float32Array(length * 2);
    count = new Uint32Array(length * 2);
  }
  share.fill(0, 0, length);
  count.fill(0, 0, length);
  return { share: share.subarray(0, length), count: count.subarray(0, length) };
}

/** How busy each device pixel of the frame is in a row. */
export function busyColumns(frame: IFrame, tracks: ITracks, row: number, range = frame.range): IColumns {
  const columns = emptyColumns(Math.ceil(frame.width * frame.ratio));
  const perColumn = (range.end - range.begin) / (frame.width * frame.ratio);
  coverage(tracks, row, range.begin, perColumn, columns.share, columns.count);
  return columns;
}
