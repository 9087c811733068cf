/**
 * A stripe at the foot of a lane wherever its ops ran under `torch.autocast`.
 */
import type { IStackRow } from '../layout/stack';
import { visible } from '../layout/tracks';
import type { Context, IFrame } from './context';
import { edges } from './lanes';

const HEIGHT = 3;

export function paintAutocasts(ctx: Context, frame: IFrame, row: IStackRow, y: number): void {
  const { range, theme, timeline } = frame;
  const { autocasts } = timeline;
  const [from, to] = visible(autocasts, row.index, range.begin, range.end);
  let drawn = -Infinity;
  ctx.fillStyle = theme.accent;
  for (let at = from; at < to; at++) {
    const [left, right] = edges(frame, autocasts.start[at], autocasts.end[at]);
    if (right > drawn) {
      ctx.fillRect(left, y + row.height - HEIGHT, right - left, HEIGHT);
      drawn = right;
    }
  }
}
