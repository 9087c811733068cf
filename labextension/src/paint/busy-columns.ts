/**
 * How busy each pixel of a row is, exactly.
 */
import { coverage, type ITracks } from '../layout/tracks';
import type { IFrame } from './context';
import type { IColumns } from './pixel-buffers';

/** Count how busy each device pixel of the frame is in a row. */
export function busyColumns(frame: IFrame, tracks: ITracks, row: number, range = frame.range): IColumns {
  const columns = frame.buffers.empty(Math.ceil(frame.width * frame.ratio));
  const perColumn = (range.end - range.begin) / (frame.width * frame.ratio);
  coverage(tracks, row, range.begin, perColumn, columns.share, columns.count);
  return columns;
}
