/**
 * Everything that painting needs: a 2D context (a recording one in the tests), colours, and fills for devices. No DOM.
 */
import type { IPin } from '../layout/flags';
import type { ITimeline } from '../layout/timeline';
import type { IRange } from '../layout/scale';
import { rowsIn, type IStack, type IStackRow } from '../layout/stack';
import type { ITracks } from '../layout/tracks';
import type { PixelBuffers } from './pixel-buffers';

export type Context = Pick<
  CanvasRenderingContext2D,
  | 'arc'
  | 'beginPath'
  | 'clip'
  | 'closePath'
  | 'fill'
  | 'fillRect'
  | 'fillStyle'
  | 'fillText'
  | 'font'
  | 'globalAlpha'
  | 'lineTo'
  | 'lineWidth'
  | 'measureText'
  | 'moveTo'
  | 'rect'
  | 'restore'
  | 'roundRect'
  | 'save'
  | 'setLineDash'
  | 'stroke'
  | 'strokeRect'
  | 'strokeStyle'
  | 'strokeText'
  | 'textAlign'
  | 'textBaseline'
  | 'translate'
>;

export type Fill = string | CanvasPattern;

export interface ITheme {
  readonly dark: boolean;
  readonly text: string;
  readonly faintText: string;
  readonly line: string;
  readonly faintLine: string;
  readonly ground: string;
  readonly raised: string;
  readonly accent: string;
  readonly font: string;
}

export interface IDevicePaint {
  readonly simulated: boolean;
  readonly fill: Fill;
  readonly colour: string;
  readonly ink: string;
}

/** The ops, module and findings that stand out in a frame. */
export interface IMarks {
  readonly selected: number;
  readonly finding: number;
  readonly hovered: number;
  readonly module: number;
  readonly pins: readonly IPin[];
  /** The ops that a search found; the others fade. */
  readonly found: ITracks | null;
}

export interface IFrame {
  readonly timeline: ITimeline;
  readonly stack: IStack;
  readonly range: IRange;
  readonly scrolled: number;
  readonly width: number;
  readonly height: number;
  /** Width of the labels at the left. */
  readonly gutter: number;
  /** Device pixels per pixel. */
  readonly ratio: number;
  readonly theme: ITheme;
  /** By device id. */
  readonly devices: readonly IDevicePaint[];
  readonly marks: IMarks;
  readonly buffers: PixelBuffers;
}

/** On the grid of device pixels, so that edges are crisp at any ratio. */
export function snap(frame: IFrame, value: number): number {
  return Math.round(value * frame.ratio) / frame.ratio;
}

export function visibleRows(frame: IFrame): readonly IStackRow[] {
  return rowsIn(frame.stack, frame.scrolled, frame.scrolled + frame.height - frame.timeline.header.height);
}

const NO_DEVICE: IDevicePaint = { simulated: false, fill: '#888888', colour: '#888888', ink: '#ffffff' };

export function paintOf(frame: IFrame, device: number): IDevicePaint {
  return frame.devices[device] ?? NO_DEVICE;
}
