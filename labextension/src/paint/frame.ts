/**
 * One frame of the timeline: labels at the left, the header above, the rows that are in view, and what stands out.
 */
import { isOfJob } from '../layout/describe';
import type { IStackRow } from '../layout/stack';
import { deviceOrNone, type ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { paintArrows, paintCulprits } from './arrows';
import { paintCalls } from './calls';
import { paintOf, visibleRows, type Context, type IFrame } from './context';
import { paintAxis, paintPins, paintPhases, paintWindow } from './header';
import { edges, paintLane } from './lanes';
import { severityLook } from './palette';
import { drawFitted } from './text';
import { paintWaits } from './waits';

/** Paints everything but the minimap's own picture, which the caller draws at the top of the plot. */
export function paintFrame(ctx: Context, frame: IFrame, drawMinimap: () => void): void {
  ctx.font = frame.theme.font;
  ctx.textBaseline = 'middle';
  ctx.fillStyle = frame.theme.ground;
  ctx.fillRect(0, 0, frame.gutter + frame.width, frame.height);
  paintLabels(ctx, frame);
  inPlot(ctx, frame, 0, () => {
    drawMinimap();
    paintWindow(ctx, frame);
    paintAxis(ctx, frame);
    paintPhases(ctx, frame);
  });
  inPlot(ctx, frame, frame.timeline.header.height, () => {
    paintRows(ctx, frame);
    ctx.translate(0, frame.timeline.header.height);
    paintArrows(ctx, frame);
    paintWaits(ctx, frame);
    paintOutlines(ctx, frame);
    paintCulprits(ctx, frame);
  });
  inPlot(ctx, frame, 0, () => {
    paintPins(ctx, frame);
  });
}

/** Runs `paint` with the plot's left edge as origin, clipped to the plot below `top`. */
function inPlot(ctx: Context, frame: IFrame, top: number, paint: () => void): void {
  ctx.save();
  ctx.translate(frame.gutter, 0);
  ctx.beginPath();
  ctx.rect(0, top, frame.width, frame.height - top);
  ctx.clip();
  paint();
  ctx.restore();
}

function paintRows(ctx: Context, frame: IFrame): void {
  for (const row of visibleRows(frame)) {
    const y = frame.timeline.header.height + row.y - frame.scrolled;
    if (row.kind === 'calls') {
      paintCalls(ctx, frame, row, y);
    } else if (row.kind === 'lane') {
      ctx.fillStyle = frame.theme.faintLine;
      ctx.fillRect(0, y + row.height, frame.width, 1 / frame.ratio);
      paintLane(ctx, frame, row, y);
    }
  }
}

function paintLabels(ctx: Context, frame: IFrame): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, frame.timeline.header.height, frame.gutter, frame.height - frame.timeline.header.height);
  ctx.clip();
  ctx.textAlign = 'left';
  for (const row of visibleRows(frame)) {
    const y = frame.timeline.header.height + row.y - frame.scrolled;
    const middle = y + row.height / 2 + 0.5;
    if (row.kind === 'lane') {
      paintLaneLabel(ctx, frame, row, y, middle);
    } else if (row.kind === 'thread') {
      ctx.fillStyle = frame.theme.faintText;
      drawFitted(ctx, threadTitle(frame.timeline.trace, row.index), 0, middle, frame.gutter);
    } else if (frame.timeline.calls.rows[row.index].depth === 0) {
      ctx.fillStyle = frame.theme.faintText;
      drawFitted(ctx, sentence(frame.timeline.trace.language, 'timeline.modules'), 0, middle, frame.gutter - 8);
    }
  }
  ctx.restore();
}

/** `MainThread`, in a job `rank 1 · MainThread`. */
function threadTitle(trace: ITrace, thread: number): string {
  if (thread < 0 || thread >= trace.threads.length) {
    return '';
  }
  const name = trace.strings[trace.threads.name[thread]];
  return isOfJob(trace) ? `${sentence(trace.language, 'fact.rank')} ${trace.threads.rank[thread]} · ${name}` : name;
}

function paintLaneLabel(ctx: Context, frame: IFrame, row: IStackRow, y: number, middle: number): void {
  const { device, spill } = frame.timeline.lanes.lanes[row.index];
  const paint = paintOf(frame, device);
  if (spill > 0) {
    return;
  }
  ctx.fillStyle = paint.fill;
  ctx.fillRect(0, y + (row.height - 12) / 2, 12, 12);
  ctx.fillStyle = frame.theme.text;
  const { trace } = frame.timeline;
  const name = deviceOrNone(trace, device);
  drawFitted(ctx, name, 18, paint.simulated && row.height > 22 ? middle - 6 : middle, frame.gutter - 22);
  if (paint.simulated && row.height > 22) {
    ctx.fillStyle = frame.theme.faintText;
    drawFitted(ctx, sentence(trace.language, 'device.simulated'), 18, middle + 6, frame.gutter - 22);
  }
}

function paintOutlines(ctx: Context, frame: IFrame): void {
  const { marks, theme } = frame;
  for (const { op, severity } of marks.pins) {
    outline(ctx, frame, op, severityLook(severity, theme.dark).fill, 2);
  }
  outline(ctx, frame, marks.hovered, theme.text, 1);
  outline(ctx, frame, marks.selected, theme.accent, 3);
}

function outline(ctx: Context, frame: IFrame, op: number, colour: string, line: number): void {
  const { timeline, stack } = frame;
  if (op < 0 || timeline.end[op] < frame.range.begin || timeline.start[op] > frame.range.end) {
    return;
  }
  const row = stack.lanes[timeline.lanes.laneOf[op]];
  const [left, right] = edges(frame, timeline.start[op], timeline.end[op]);
  const room = Math.max(right - left, 5);
  ctx.strokeStyle = colour;
  ctx.lineWidth = line;
  ctx.strokeRect(left - line / 2, row.y - frame.scrolled - line / 2, room + line, row.height + line);
}
