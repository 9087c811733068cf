/**
 * Copies between lanes, and the ways of findings' tensors.
 */
import { arrowsIn, type IArrow } from '../layout/copies';
import { hasRoomForLabels, LANE_GAP } from '../layout/stack';
import type { IPoint } from '../layout/point';
import { formatBytes } from '../layout/units';
import { deviceByName } from '../model/trace';
import { snap, type Context, type IFrame } from './context';
import { severityLook } from './palette';
import { fitted, textWidth } from './text';

export function paintArrows(ctx: Context, frame: IFrame): void {
  const arrows = arrowsIn(frame.timeline.copies, frame.range, frame.width).map(arrow => drawn(frame, arrow));
  // The light edges of all come first: else one arrow would cut the head of the next.
  for (const { line } of arrows) {
    paintShaft(ctx, line, frame.theme.ground, 4);
  }
  for (const { line } of arrows) {
    paintInk(ctx, line, frame.theme.text);
  }
  if (hasRoomForLabels(frame.stack)) {
    paintLabels(ctx, frame, arrows);
  }
}

/** Heads of arrows reach this far (px) to both sides. */
const HEAD = 4;
/** The middle of a label is so far (px) below the lane above it, where ticks of the lane below it end. */
const CLEAR = 5;

interface IDrawn {
  readonly arrow: IArrow;
  readonly line: ILine;
  /** The middle of its label: beside the lane that it leaves, above the ticks of waits. */
  readonly labelY: number;
}

function drawn(frame: IFrame, arrow: IArrow): IDrawn {
  const from = frame.stack.lanes[arrow.from];
  const line = lineBetween(frame, arrow.from, arrow.to, snap(frame, arrow.x));
  const below = line.end > line.begin ? from.y + from.height : from.y - LANE_GAP;
  return { arrow, line, labelY: below + CLEAR - frame.scrolled };
}

/** An arrow straight up or down. */
interface ILine {
  readonly x: number;
  readonly begin: number;
  readonly end: number;
}

/** From one lane into another, where they are on the canvas. */
function lineBetween({ stack, scrolled }: IFrame, fromLane: number, toLane: number, x: number): ILine {
  const [from, to] = [stack.lanes[fromLane], stack.lanes[toLane]];
  const down = to.y > from.y;
  const begin = (down ? from.y + from.height - 5 : from.y + 5) - scrolled;
  return { x, begin, end: (down ? to.y : to.y + to.height) - scrolled };
}

function paintShaft(ctx: Context, { x, begin, end }: ILine, colour: string, width: number): void {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(x, begin);
  ctx.lineTo(x, end + headOf({ begin, end }) / 2);
  ctx.stroke();
}

function paintInk(ctx: Context, line: ILine, ink: string): void {
  const { x, begin, end } = line;
  const head = headOf(line);
  paintShaft(ctx, line, ink, 1.5);
  ctx.fillStyle = ink;
  ctx.beginPath();
  ctx.moveTo(x - HEAD, end + head);
  ctx.lineTo(x + HEAD, end + head);
  ctx.lineTo(x, end);
  ctx.closePath();
  ctx.fill();
  ctx.beginPath();
  ctx.arc(x, begin, 2.5, 0, 2 * Math.PI);
  ctx.fill();
}

/** From its tip, how far its head goes back. */
function headOf({ begin, end }: Pick<ILine, 'begin' | 'end'>): number {
  return end > begin ? -6 : 6;
}

/** `×12 768 KB` to the right of each arrow, where no other arrow and no pin stands in its way. */
function paintLabels(ctx: Context, frame: IFrame, arrows: readonly IDrawn[]): void {
  const taken = [...arrows.map(({ line }) => line.x), ...frame.marks.pins.map(({ x }) => x)];
  for (const { arrow, line, labelY: y } of arrows) {
    const text = `${arrow.count > 1 ? `×${arrow.count} ` : ''}${formatBytes(arrow.bytes)}`;
    const left = line.x + HEAD;
    const right = left + textWidth(ctx, text) + HEAD;
    if (right <= frame.width && !taken.some(x => x > line.x && x < right + HEAD)) {
      ctx.fillStyle = frame.theme.ground;
      ctx.fillRect(left, y - CLEAR, right - left, 2 * CLEAR);
      ctx.fillStyle = frame.theme.text;
      ctx.textAlign = 'left';
      ctx.fillText(text, left + 2, y + 0.5);
    }
  }
}

/** The tensor of an error, or of the picked finding, on its way from its own lane into the op's. */
export function paintCulprits(ctx: Context, frame: IFrame): void {
  const { timeline, stack, marks, theme } = frame;
  const { trace, lanes } = timeline;
  for (const pin of marks.pins.filter(({ severity, finding }) => severity === 'error' || finding === marks.finding)) {
    const { op, culprit } = trace.findings?.[pin.finding] ?? { op: -1, culprit: null };
    const from = culprit ? lanes.find(trace.ops.thread[pin.op], deviceByName(trace, culprit.device)) : -1;
    const to = lanes.laneOf[pin.op];
    if (culprit && op === pin.op && from >= 0 && from !== to) {
      const line = lineBetween(frame, from, to, snap(frame, pin.x) + 4);
      const colour = severityLook(pin.severity, theme.dark).fill;
      const { y, height } = stack.lanes[from];
      paintShaft(ctx, line, theme.ground, 4);
      paintInk(ctx, line, colour);
      paintName(ctx, frame, culprit.name, { x: line.x, y: y + height / 2 - frame.scrolled }, colour);
    }
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
