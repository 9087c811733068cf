/**
 * Calls of modules above the lanes: named bands, one row for each depth.
 */
import type { IStackRow } from '../layout/stack';
import { visible } from '../layout/tracks';
import { modulePath } from '../model/trace';
import { busyColumns } from './busy-columns';
import type { Context, IFrame } from './context';
import { edges } from './lanes';
import { drawFitted } from './text';

export function paintCalls(ctx: Context, frame: IFrame, row: IStackRow, y: number): void {
  const { range, width, timeline, theme } = frame;
  const { tracks } = timeline.calls;
  const [from, to] = visible(tracks, row.index, range.begin, range.end);
  if (to - from > width / 3) {
    paintDense(ctx, frame, row, y);
    return;
  }
  for (let at = from; at < to; at++) {
    const module = timeline.trace.calls.module[tracks.order[at]];
    const [left, right] = edges(frame, tracks.start[at], tracks.end[at]);
    ctx.fillStyle = module === frame.marks.module ? theme.accent : theme.raised;
    ctx.globalAlpha = module === frame.marks.module ? 0.35 : 1;
    ctx.fillRect(left, y, right - left, row.height);
    ctx.globalAlpha = 1;
    if (right - left > 20) {
      ctx.fillStyle = theme.faintText;
      const path = modulePath(timeline.trace, module);
      drawFitted(ctx, row.height < 12 ? '' : lastName(path), left + 5, y + row.height / 2 + 0.5, right - left - 8);
    }
  }
}

function paintDense(ctx: Context, frame: IFrame, row: IStackRow, y: number): void {
  const { ratio } = frame;
  const { share, count } = busyColumns(frame, frame.timeline.calls.tracks, row.index);
  ctx.fillStyle = frame.theme.raised;
  let from = -1;
  for (let x = 0; x <= share.length; x++) {
    const busy = x < share.length && (share[x] > 0.02 || count[x] > 0);
    if (busy && from < 0) {
      from = x;
    } else if (!busy && from >= 0) {
      ctx.fillRect(from / ratio, y, (x - from) / ratio, row.height);
      from = -1;
    }
  }
}

/** `blocks.3` of `model.blocks.3`, `qkv` of `model.blocks.3.att.qkv`: a number alone says nothing. */
function lastName(path: string): string {
  const names = path.split('.');
  const last = names[names.length - 1];
  return names.length > 1 && /^\d+$/.test(last) ? `${names[names.length - 2]}.${last}` : last;
}
