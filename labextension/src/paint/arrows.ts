/**
 * Copies between lanes, and the ticks where the host waits for a device.
 */
import { arrowsIn, type IArrow } from '../layout/copies';
import { hasRoomForLabels } from '../layout/stack';
import { formatBytes } from '../layout/units';
import { snap, type Context, type IFrame } from './context';
import { textWidth } from './text';

export function paintArrows(ctx: Context, frame: IFrame): void {
  const free = new Map<string, number>();
  for (const arrow of arrowsIn(frame.timeline.copies, frame.range, frame.width)) {
    const from = frame.stack.lanes[arrow.from];
    const to = frame.stack.lanes[arrow.to];
    const down = to.y > from.y;
    const begin = down ? from.y + from.height - 5 : from.y + 5;
    const end = down ? to.y : to.y + to.height;
    const x = snap(frame, arrow.x);
    paintArrow(ctx, frame, x, begin - frame.scrolled, end - frame.scrolled);
    if (hasRoomForLabels(frame.stack)) {
      const gapY = down ? from.y + from.height + 8 : from.y - 8;
      paintLabel(ctx, frame, arrow, x, gapY - frame.scrolled, free);
    }
  }
}

function paintArrow(ctx: Context, frame: IFrame, x: number, begin: number, end: number): void {
  const head = end > begin ? -6 : 6;
  for (const [colour, width] of [
    [frame.theme.ground, 4],
    [frame.theme.text, 1.5]
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x, begin);
    ctx.lineTo(x, end + head / 2);
    ctx.stroke();
  }
  ctx.fillStyle = frame.theme.text;
  ctx.beginPath();
  ctx.moveTo(x - 4, end + head);
  ctx.lineTo(x + 4, end + head);
  ctx.lineTo(x, end);
  ctx.closePath();
  ctx.fill();
  ctx.beginPath();
  ctx.arc(x, begin, 2.5, 0, 2 * Math.PI);
  ctx.fill();
}

/** `×12 768 KiB` to the right of the arrow, unless another label is there. */
function paintLabel(ctx: Context, frame: IFrame, arrow: IArrow, x: number, y: number, free: Map<string, number>): void {
  const label = `${arrow.count > 1 ? `×${arrow.count} ` : ''}${formatBytes(arrow.bytes)}`;
  const width = textWidth(ctx, label);
  const band = String(Math.round(y));
  if (x < (free.get(band) ?? -Infinity) || x + width + 8 > frame.width) {
    return;
  }
  free.set(band, x + width + 14);
  ctx.fillStyle = frame.theme.ground;
  ctx.fillRect(x + 4, y - 6, width + 4, 12);
  ctx.fillStyle = frame.theme.text;
  ctx.textAlign = 'left';
  ctx.fillText(label, x + 6, y + 0.5);
}
