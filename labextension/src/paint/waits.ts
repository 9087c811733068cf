/**
 * A tick above a lane wherever the CPU waits for its device; closer ones are one.
 */
import type { IPoint } from '../layout/point';
import { xOf } from '../layout/scale';
import { search } from '../layout/tracks';
import { snap, visibleRows, type Context, type IFrame } from './context';

/** Ticks are at least so far apart (px). */
const APART = 9;

export function paintWaits(ctx: Context, frame: IFrame): void {
  ctx.fillStyle = frame.theme.faintText;
  for (const { x, y } of waitTicks(frame)) {
    ctx.beginPath();
    ctx.moveTo(x - 3.5, y - 5);
    ctx.lineTo(x + 3.5, y - 5);
    ctx.lineTo(x, y + 1);
    ctx.closePath();
    ctx.fill();
  }
}

/** Where the ticks in view point to: the upper edges of their lanes. */
export function waitTicks(frame: IFrame): IPoint[] {
  const { syncs } = frame.timeline;
  const { range, width } = frame;
  const perGap = ((range.end - range.begin) / width) * APART;
  const ticks: IPoint[] = [];
  for (const row of visibleRows(frame).filter(({ kind }) => kind === 'lane')) {
    const last = syncs.rows[row.index + 1];
    let at = search(syncs.start, range.begin, syncs.rows[row.index], last);
    while (at < last && syncs.start[at] <= range.end) {
      ticks.push({ x: snap(frame, xOf(range, width, syncs.start[at])), y: row.y - frame.scrolled });
      at = search(syncs.start, (Math.floor(syncs.start[at] / perGap) + 1) * perGap, at + 1, last);
    }
  }
  return ticks;
}
