/**
 * A canvas for tests that writes down what is painted on it, and frames to paint.
 */
import { buildStack } from '../src/layout/stack';
import { buildTimeline } from '../src/layout/timeline';
import type { ITrace } from '../src/model/trace';
import type { Context, IFrame, IMarks } from '../src/paint/context';
import { paintFrame } from '../src/paint/frame';
import { PixelBuffers } from '../src/paint/pixel-buffers';

export interface IRect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly fill: string;
  readonly alpha: number;
}

export interface IRecord {
  readonly rects: IRect[];
  readonly outlines: IRect[];
  readonly texts: Array<{ readonly text: string; readonly x: number; readonly y: number }>;
}

/** A context that writes down what is painted, in the canvas's own pixels. Letters are 6 px wide. */
export function recordingContext(): [Context, IRecord] {
  const record: IRecord = { rects: [], outlines: [], texts: [] };
  let offset = { x: 0, y: 0 };
  const saved: Array<typeof offset> = [];
  const nothing = (): void => undefined;
  const rect = (x: number, y: number, width: number, height: number, fill: unknown): IRect => ({
    x: x + offset.x,
    y: y + offset.y,
    width,
    height,
    fill: String(fill),
    alpha: ctx.globalAlpha
  });
  const ctx: Context = {
    ...{ arc: nothing, beginPath: nothing, clip: nothing, closePath: nothing, fill: nothing, lineTo: nothing },
    ...{
      moveTo: nothing,
      rect: nothing,
      roundRect: nothing,
      setLineDash: nothing,
      stroke: nothing,
      strokeText: nothing
    },
    ...{ fillStyle: '', strokeStyle: '', font: '', globalAlpha: 1, lineWidth: 1 },
    ...{ textAlign: 'left' as const, textBaseline: 'middle' as const },
    fillRect: (x, y, width, height) => record.rects.push(rect(x, y, width, height, ctx.fillStyle)),
    strokeRect: (x, y, width, height) => record.outlines.push(rect(x, y, width, height, ctx.strokeStyle)),
    fillText: (text, x, y) => record.texts.push({ text, x: x + offset.x, y: y + offset.y }),
    measureText: text => ({ width: text.length * 6 }) as TextMetrics,
    translate: (x, y) => {
      offset = { x: offset.x + x, y: offset.y + y };
    },
    save: () => saved.push(offset),
    restore: () => {
      offset = saved.pop() ?? offset;
    }
  };
  return [ctx, record];
}

export const COLOURS = ['#cpu', '#gpu0', '#gpu1'];
export const NO_MARKS: IMarks = {
  ...{ selected: -1, finding: -1, hovered: -1, module: -1 },
  pins: [],
  found: null
};

export function frameOf(trace: ITrace, change: Partial<IFrame> = {}): IFrame {
  const timeline = buildTimeline(trace, 'time');
  return {
    timeline,
    stack: buildStack(timeline),
    range: timeline.whole,
    scrolled: 0,
    width: 800,
    height: 300,
    gutter: 100,
    ratio: 1,
    theme: {
      ...{ dark: false, text: '#text', faintText: '#faint', line: '#line', faintLine: '#faintline' },
      ...{ ground: '#ground', raised: '#raised', accent: '#accent', font: '11px test' }
    },
    devices: COLOURS.map(fill => ({ simulated: false, fill, colour: fill, ink: '#ink' })),
    marks: NO_MARKS,
    buffers: new PixelBuffers(),
    ...change
  };
}

export function paint(frame: IFrame): IRecord {
  const [ctx, record] = recordingContext();
  paintFrame(ctx, frame, () => undefined);
  return record;
}
