/**
 * Copies between lanes, and the ticks where the host waits for a device.
 */
import { arrowsIn, type IArrow } from '../layout/copies';
import { xOf } from '../layout/scale';
import { hasRoomForLabels } from '../layout/stack';
import type { IPoint } from '../layout/point';
import { formatBytes } from '../layout/units';
import { snap, type Context, type IFrame } from './context';
import { severityLook } from './palette';
import { fitted, textWidth } from './text';

export function paintArrows(ctx: Context, frame: IFrame): void {
  const free = new Map<string, number>();
  const arrows = arrowsIn(frame.timeline.copies, frame.range, frame.width);
  for (const [i, arrow] of arrows.entries()) {
    const from = frame.stack.lanes[arrow.from];
    const to = frame.stack.lanes[arrow.to];
    const down = to.y > from.y;
    const begin = down ? from.y + from.height - 5 : from.y + 5;
    const end = down ? to.y : to.y + to.height;
    const x = snap(frame, arrow.x);
    paintArrow(ctx, frame, { x, begin: begin - frame.scrolled, end: end - frame.scrolled });
    if (hasRoomForLabels(frame.stack)) {
      const gapY = down ? from.y + from.height + 8 : from.y - 8;
      const next = arrows.at(i + 1);
      const room = next?.from === arrow.from && next.to === arrow.to ? next.x - arrow.x : Infinity;
      paintLabel(ctx, frame, arrow, { x, y: gapY - frame.scrolled, room }, free);
    }
  }
}

/** An arrow straight up or down. */
interface ILine {
  readonly x: number;
  readonly begin: number;
  readonly end: number;
}

function paintArrow(ctx: Context, frame: IFrame, { x, begin, end }: ILine, ink = frame.theme.text): void {
  const head = end > begin ? -6 : 6;
  for (const [colour, width] of [
    [frame.theme.ground, 4],
    [ink, 1.5]
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x, begin);
    ctx.lineTo(x, end + head / 2);
    ctx.stroke();
  }
  ctx.fillStyle = ink;
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

/** `×12 768 KB` to the right of the arrow, unless another label is there. */
function paintLabel(
  ctx: Context,
  frame: IFrame,
  arrow: IArrow,
  { x, y, room }: { readonly x: number; readonly y: number; readonly room: number },
  free: Map<string, number>
): void {
  const label = `${arrow.count > 1 ? `×${arrow.count} ` : ''}${formatBytes(arrow.bytes)}`;
  const width = textWidth(ctx, label);
  const band = String(Math.round(y));
  if (width + 12 > room || x < (free.get(band) ?? -Infinity) || x + width + 8 > frame.width) {
    return;
  }
  free.set(band, x + width + 14);
  ctx.fillStyle = frame.theme.ground;
  ctx.fillRect(x + 4, y - 6, width + 4, 12);
  ctx.fillStyle = frame.theme.text;
  ctx.textAlign = 'left';
  ctx.fillText(label, x + 6, y + 0.5);
}

/** A finding's tensor on its way from its own lane into an op of another: what errors, and the finding that is picked, are about. */
export function paintCulprits(ctx: Context, frame: IFrame): void {
  const { timeline, stack, marks } = frame;
  for (const { finding, op, from, to, name } of timeline.culprits) {
    const pin = marks.pins.find(found => found.op === op);
    const x = snap(frame, xOf(frame.range, frame.width, timeline.start[op])) + 4;
    if (!pin || (pin.severity !== 'error' && marks.finding !== finding)) {
      continue;
    }
    const colour = severityLook(pin.severity, frame.theme.dark).fill;
    const [own, other] = [stack.lanes[from], stack.lanes[to]];
    const down = other.y > own.y;
    const begin = (down ? own.y + own.height - 5 : own.y + 5) - frame.scrolled;
    const end = (down ? other.y : other.y + other.height) - frame.scrolled;
    paintArrow(ctx, frame, { x, begin, end }, colour);
    paintName(ctx, frame, name, { x, y: own.y + own.height / 2 - frame.scrolled }, colour);
  }
}

/** Paint the tensor's name in its own lane, on the side of the arrow that has room. */
function paintName(ctx: Context, frame: IFrame, name: string, { x, y }: IPoint, colour: string): void {
  const label = fitted(ctx, name, 240);
  const width = textWidth(ctx, label) + 12;
  const left = x + 8 + width < frame.width ? x + 8 : x - 8 - width;
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.roundRect(left, y - 9, width, 18, 4);
  ctx.fill();
  ctx.fillStyle = frame.theme.ground;
  ctx.textAlign = 'left';
  ctx.fillText(label, left + 6, y + 0.5);
}
