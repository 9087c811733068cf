/**
 * The share of each pixel of a row that is busy, exactly.
 */
import { coverage, type ITracks } from '../layout/tracks';
import type { IFrame } from './context';
import type { IColumns } from './pixel-buffers';

/** Fill the frame's buffers with one row's share and count of each device pixel. */
export function busyColumns(frame: IFrame, tracks: ITracks, row: number, range = frame.range): IColumns {
  const columns = frame.buffers.empty(Math.ceil(frame.width * frame.ratio));
  const perColumn = (range.end - range.begin) / (frame.width * frame.ratio);
  coverage(tracks, row, range.begin, perColumn, columns.share, columns.count);
  return columns;
}
