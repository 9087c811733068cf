/**
 * The ops of a lane: boxes with names where there is room, else how busy each pixel is, exactly.
 */
import { xOf } from '../layout/scale';
import type { IStackRow } from '../layout/stack';
import { visible, type ITracks } from '../layout/tracks';
import { shortOpName } from '../layout/units';
import { opName } from '../model/trace';
import { busyColumns } from './busy-columns';
import { paintOf, snap, type Context, type IDevicePaint, type IFrame } from './context';
import type { IColumns } from './pixel-buffers';
import { drawFitted } from './text';

/** With more spans in view than this many to a pixel, none is wide enough for a box of its own. */
const DENSE = 3;
/** Narrower spans (in device pixels) are gathered into how busy their pixels are. */
const NARROW = 2;
/** The faintest that a pixel with any work in it gets. */
const FAINTEST = 0.25;
const SHADES = 12;

export function paintLane(ctx: Context, frame: IFrame, row: IStackRow, y: number): void {
  const { device } = frame.timeline.lanes.lanes[row.index];
  const paint = paintOf(frame, device);
  const { found } = frame.marks;
  ctx.globalAlpha = found ? 0.18 : 1;
  const band = { lane: row.index, y, height: row.height, paint };
  paintSpans(ctx, frame, frame.timeline.lanes.tracks, band);
  if (found) {
    ctx.globalAlpha = 1;
    paintSpans(ctx, frame, found, band);
  }
}

/** A lane's strip of the canvas. */
interface IBand {
  readonly lane: number;
  readonly y: number;
  readonly height: number;
  readonly paint: IDevicePaint;
}

function paintSpans(ctx: Context, frame: IFrame, tracks: ITracks, band: IBand): void {
  const { range, width, ratio } = frame;
  const [from, to] = visible(tracks, band.lane, range.begin, range.end);
  ctx.fillStyle = band.paint.fill;
  if (to - from > DENSE * width * ratio) {
    paintShares(ctx, frame, busyColumns(frame, tracks, band.lane), band);
    return;
  }
  const columns = frame.buffers.empty(Math.ceil(width * ratio));
  const wide = gatherNarrow(frame, tracks, [from, to], columns);
  paintShares(ctx, frame, columns, band);
  for (const at of wide) {
    paintBox(ctx, frame, tracks, at, band);
  }
}

/** Adds spans too narrow for a box to the pixel where they start; the result is the positions of the others. */
function gatherNarrow(
  frame: IFrame,
  tracks: ITracks,
  [from, to]: readonly [number, number],
  { share, count }: IColumns
): number[] {
  const { range } = frame;
  const wide: number[] = [];
  const scale = (frame.width * frame.ratio) / (range.end - range.begin);
  for (let at = from; at < to; at++) {
    const pixels = (tracks.end[at] - tracks.start[at]) * scale;
    if (pixels >= NARROW) {
      wide.push(at);
    } else {
      const x = Math.min(Math.max(Math.floor((tracks.start[at] - range.begin) * scale), 0), share.length - 1);
      share[x] += pixels;
      count[x]++;
    }
  }
  return wide;
}

/** Neighbouring pixels of one shade become one rectangle. */
function paintShares(ctx: Context, frame: IFrame, { share, count }: IColumns, { y, height }: IBand): void {
  const base = ctx.globalAlpha;
  let from = 0;
  let shade = shadeOf(share[0], count[0]);
  for (let x = 1; x <= share.length; x++) {
    const next = x < share.length ? shadeOf(share[x], count[x]) : -1;
    if (next !== shade) {
      if (shade > 0) {
        ctx.globalAlpha = base * (FAINTEST + (1 - FAINTEST) * (shade / SHADES));
        ctx.fillRect(from / frame.ratio, y, (x - from) / frame.ratio, height);
      }
      from = x;
      shade = next;
    }
  }
  ctx.globalAlpha = base;
}

/** 0: nothing. A pixel in which something starts, or that something covers, is never nothing. */
function shadeOf(share: number, count: number): number {
  return share > 0 || count > 0 ? Math.max(1, Math.ceil(Math.min(share, 1) * SHADES)) : 0;
}

function paintBox(ctx: Context, frame: IFrame, tracks: ITracks, at: number, { y, height, paint }: IBand): void {
  const { trace } = frame.timeline;
  const op = tracks.order[at];
  const [left, right] = edges(frame, tracks.start[at], tracks.end[at]);
  const isView = trace.strings[trace.ops.kind[op]] === 'view';
  const base = ctx.globalAlpha;
  ctx.fillStyle = paint.fill;
  ctx.globalAlpha = isView ? base * 0.35 : base;
  ctx.fillRect(left, y, right - left, height);
  ctx.globalAlpha = base;
  if (right - left > 24) {
    ctx.fillStyle = isView ? frame.theme.text : paint.ink;
    drawFitted(ctx, shortOpName(opName(trace, op)), left + 5, y + height / 2 + 0.5, right - left - 9);
  }
}

/** A box's left and right in view, a hairline apart from its neighbour's. */
export function edges(frame: IFrame, start: number, end: number): [left: number, right: number] {
  const { range, width, ratio } = frame;
  const left = snap(frame, Math.max(xOf(range, width, start), -2));
  const right = snap(frame, Math.min(xOf(range, width, end), width + 2));
  const gap = right - left > 4 ? 1 / ratio : 0;
  return [left, Math.max(right - gap, left + 1 / ratio)];
}
