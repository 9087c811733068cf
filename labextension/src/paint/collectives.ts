/**
 * Collectives behind the lanes: one bar each across the ranks that took part.
 */
import { stretchOf } from '../layout/collective-bars';
import { visible } from '../layout/tracks';
import { busyColumns } from './busy-columns';
import type { Context, IFrame } from './context';
import { edges } from './lanes';

/** With more bars in view than one in so many pixels they are one grey. */
const DENSE = 3;
const SHADE = 0.14;

export function paintCollectives(ctx: Context, frame: IFrame): void {
  const { range, width, timeline, stack } = frame;
  const { tracks, ops } = timeline.collectives;
  if (ops.length === 0) {
    return;
  }
  const top = timeline.header.height - frame.scrolled;
  const [from, to] = visible(tracks, 0, range.begin, range.end);
  ctx.fillStyle = frame.theme.text;
  if (to - from > width / DENSE) {
    paintDense(ctx, frame, top);
    return;
  }
  for (let at = from; at < to; at++) {
    const stretch = stretchOf(timeline, stack, tracks.order[at]);
    const [left, right] = edges(frame, tracks.start[at], tracks.end[at]);
    if (stretch) {
      ctx.globalAlpha = tracks.order[at] === frame.marks.collective ? 2 * SHADE : SHADE;
      ctx.fillRect(left, top + stretch.top, right - left, stretch.bottom - stretch.top);
    }
  }
  ctx.globalAlpha = 1;
}

function paintDense(ctx: Context, frame: IFrame, top: number): void {
  const { share, count } = busyColumns(frame, frame.timeline.collectives.tracks, 0);
  const stretches = [...frame.stack.ranks.values()];
  const [first, last] = [stretches[0]?.top ?? 0, stretches[stretches.length - 1]?.bottom ?? 0];
  for (let x = 0; x < share.length; x++) {
    if (share[x] > 0 || count[x] > 0) {
      ctx.globalAlpha = SHADE * Math.max(0.3, Math.min(share[x], 1));
      ctx.fillRect(x / frame.ratio, top + first, 1 / frame.ratio, last - first);
    }
  }
  ctx.globalAlpha = 1;
}
