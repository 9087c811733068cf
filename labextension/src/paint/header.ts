/**
 * Above the lanes: the whole trace in small with the view's window on it, the axis, the flags of findings, the phases.
 */
import { phaseName } from '../layout/describe';
import { foldedTicks } from '../layout/folds';
import { xOf } from '../layout/scale';
import { visible } from '../layout/tracks';
import { countTicks } from '../layout/units';
import { PHASES } from '../model/trace';
import { busyColumns } from './busy-columns';
import { paintOf, snap, type Context, type IFrame } from './context';
import { paintFolds } from './folds';
import { edges } from './lanes';
import { severityLook } from './palette';
import { drawFitted, textWidth } from './text';

/** The lanes of the whole trace, a few pixels each; drawn once into a picture of its own. */
export function paintMinimap(ctx: Context, frame: IFrame): void {
  const { lanes, tracks } = frame.timeline.lanes;
  const { whole } = frame.timeline;
  const height = (frame.timeline.header.minimap.height - 4) / Math.max(lanes.length, 1);
  for (let lane = 0; lane < Math.min(lanes.length, frame.timeline.header.minimap.height * 2); lane++) {
    const { share, count } = busyColumns(frame, tracks, lane, whole);
    ctx.fillStyle = paintOf(frame, lanes[lane].device).colour;
    const y = frame.timeline.header.minimap.y + 2 + lane * height;
    for (let x = 0; x < count.length; x++) {
      if (count[x] > 0 || share[x] > 0) {
        ctx.globalAlpha = 0.3 + 0.7 * Math.min(share[x], 1);
        ctx.fillRect(x / frame.ratio, y, 1 / frame.ratio, Math.max(height - 1, 0.5));
      }
    }
  }
  ctx.globalAlpha = 1;
}

/** Outline the part of the minimap that is in view. */
export function paintWindow(ctx: Context, frame: IFrame): void {
  const { width, theme, range, timeline } = frame;
  const { y, height } = timeline.header.minimap;
  const left = snap(frame, xOf(timeline.whole, width, range.begin));
  const right = Math.max(snap(frame, xOf(timeline.whole, width, range.end)), left + 3);
  ctx.fillStyle = theme.ground;
  ctx.globalAlpha = 0.65;
  ctx.fillRect(0, y, left, height);
  ctx.fillRect(right, y, width - right, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 1;
  ctx.strokeRect(left + 0.5, y + 0.5, right - left - 1, height - 1);
}

/** Times (or counts of ops) with a line down through the lanes. */
export function paintAxis(ctx: Context, frame: IFrame): void {
  const { range, width, height, theme } = frame;
  const { header, clock, folds } = frame.timeline;
  const { axis } = header;
  const most = width / 110;
  ctx.textAlign = 'left';
  const taken = paintFolds(ctx, frame);
  const ticks = clock === 'time' ? foldedTicks(folds, range, most) : countTicks(range.begin, range.end, most);
  for (const { time, label } of ticks) {
    const x = snap(frame, xOf(range, width, time));
    ctx.fillStyle = theme.faintLine;
    ctx.fillRect(x, axis.y + 3, 1 / frame.ratio, height);
    const right = x + 4 + textWidth(ctx, label);
    if (time >= 0 && right < width && taken.every(({ begin, end }) => right < begin || x > end)) {
      ctx.fillStyle = theme.faintText;
      ctx.fillText(label, x + 4, axis.y + axis.height / 2);
    }
  }
}

/** Forward, backward and optimizer: told apart by shade and by name. */
export function paintPhases(ctx: Context, frame: IFrame): void {
  PHASES.forEach((phase, row) => {
    const { range, width, theme, timeline } = frame;
    const band = timeline.header.phases;
    const [from, to] = visible(timeline.phases, row, range.begin, range.end);
    ctx.fillStyle = theme.text;
    if (to - from > width / 4) {
      paintDensePhase(ctx, frame, row);
      return;
    }
    for (let at = from; at < to; at++) {
      const [left, right] = edges(frame, timeline.phases.start[at], timeline.phases.end[at]);
      ctx.globalAlpha = PHASE_SHADES[row];
      ctx.fillRect(left, band.y, right - left, band.height);
      ctx.globalAlpha = 1;
      drawFitted(ctx, phaseName(timeline.trace, phase), left + 5, band.y + band.height / 2 + 0.5, right - left - 8);
    }
  });
}

const PHASE_SHADES = [0.07, 0.16, 0.3] as const;

function paintDensePhase(ctx: Context, frame: IFrame, row: number): void {
  const band = frame.timeline.header.phases;
  const { share } = busyColumns(frame, frame.timeline.phases, row);
  for (let x = 0; x < share.length; x++) {
    ctx.globalAlpha = PHASE_SHADES[row] * Math.min(share[x], 1);
    ctx.fillRect(x / frame.ratio, band.y, 1 / frame.ratio, band.height);
  }
  ctx.globalAlpha = 1;
}

/** A pin above each flagged op, with a line down to it. */
export function paintPins(ctx: Context, frame: IFrame): void {
  for (const { x, severity } of frame.marks.pins) {
    const { fill, sign } = severityLook(severity, frame.theme.dark);
    ctx.fillStyle = fill;
    ctx.globalAlpha = severity === 'error' ? 0.9 : 0.5;
    ctx.fillRect(snap(frame, x), frame.timeline.header.flags.y + 12, 1 / frame.ratio, frame.height);
    ctx.globalAlpha = 1;
    paintPin(ctx, frame, sign, snap(frame, x));
  }
}

function paintPin(ctx: Context, frame: IFrame, sign: string, x: number): void {
  const y = frame.timeline.header.flags.y + 8;
  ctx.beginPath();
  ctx.arc(x, y, 7, 0, 2 * Math.PI);
  ctx.fill();
  ctx.fillStyle = frame.theme.ground;
  ctx.textAlign = 'center';
  ctx.fillText(sign, x, y + 0.5);
  ctx.textAlign = 'left';
}
