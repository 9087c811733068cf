/**
 * The canvas of a timeline: as large as its plot, in the colours of the page, painted once a frame at most.
 */
import type { IRange } from '../layout/scale';
import type { IStack } from '../layout/stack';
import type { ITimeline } from '../layout/timeline';
import type { IFrame, IMarks } from '../paint/context';
import { paintFrame } from '../paint/frame';
import { paintMinimap } from '../paint/header';
import { PixelBuffers } from '../paint/pixel-buffers';
import { h } from './dom';
import { devicePaints, readTheme, type Theme } from './theme';

/** The part of a frame that the timeline decides; size and colours are the canvas's. */
export interface IFrameContent {
  readonly timeline: ITimeline;
  readonly stack: IStack;
  readonly range: IRange;
  readonly scrolled: number;
  readonly gutter: number;
  readonly marks: IMarks;
}

type IColours = Pick<IFrame, 'theme' | 'devices'>;

/** The small picture of the whole trace, and the timeline that it is of. */
interface IMinimap {
  readonly picture: HTMLCanvasElement;
  readonly timeline: ITimeline;
}

export class TimelineCanvas {
  readonly node: HTMLCanvasElement;
  private _frame = 0;
  private _isDisposed = false;
  private _width = 0;
  private _height = 0;
  private _ratio = 0;
  /** The colours, null when they have to be read again. */
  private _colours: IColours | null = null;
  private _minimap: IMinimap | null = null;
  private readonly _buffers = new PixelBuffers();

  /** `_content` is called for each frame; `_root` is marked as ready once something is painted. */
  constructor(
    private readonly _root: HTMLElement,
    private readonly _theme: Theme,
    private readonly _content: () => IFrameContent
  ) {
    this.node = h(_root, 'canvas', { class: 'dt-canvas', aria: { hidden: 'true' } });
  }

  readonly redraw = (): void => {
    if (this._frame === 0 && !this._isDisposed) {
      this._frame = requestAnimationFrame(this._paint);
    }
  };

  resize(width: number, height: number): void {
    if (width > 0 && (width !== this._width || height !== this._height)) {
      this._width = width;
      this._height = height;
      this._minimap = null;
    }
    this.redraw();
  }

  readonly forgetColours = (): void => {
    this._colours = null;
    this.redraw();
  };

  readonly dispose = (): void => {
    this._isDisposed = true;
    cancelAnimationFrame(this._frame);
  };

  get width(): number {
    return this._width;
  }

  private readonly _paint = (): void => {
    this._frame = 0;
    const ctx = this._width === 0 ? null : this.node.getContext('2d', { alpha: false });
    if (!ctx) {
      return;
    }
    const ratio = this.node.ownerDocument.defaultView?.devicePixelRatio ?? 1;
    this._fit(ratio);
    const frame = this._makeFrame(this._content(), ratio);
    const minimap = this._minimapOf(frame);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintFrame(ctx, frame, () => {
      ctx.drawImage(minimap, 0, 0, frame.width, frame.timeline.header.minimap.height);
    });
    this._root.dataset['ready'] = 'true';
  };

  private _fit(ratio: number): void {
    const width = Math.round(this._width * ratio);
    const height = Math.round(this._height * ratio);
    if (this.node.width !== width || this.node.height !== height || this._ratio !== ratio) {
      this.node.width = width;
      this.node.height = height;
      this.node.style.width = `${this._width}px`;
      this.node.style.height = `${this._height}px`;
      this._ratio = ratio;
      this._colours = null;
    }
  }

  private _makeFrame(content: IFrameContent, ratio: number): IFrame {
    if (this._colours === null) {
      const devices = devicePaints(this._root, content.timeline.trace, this._theme.isDark, ratio);
      this._colours = { theme: readTheme(this._root), devices };
      this._minimap = null;
    }
    const size = { width: Math.max(this._width - content.gutter, 1), height: this._height, ratio };
    return { ...content, ...size, ...this._colours, buffers: this._buffers };
  }

  private _minimapOf(frame: IFrame): HTMLCanvasElement {
    if (this._minimap?.timeline !== frame.timeline) {
      this._minimap = { picture: this._drawMinimap(frame), timeline: frame.timeline };
    }
    return this._minimap.picture;
  }

  private _drawMinimap(frame: IFrame): HTMLCanvasElement {
    const { height } = frame.timeline.header.minimap;
    const picture = this.node.ownerDocument.createElement('canvas');
    picture.width = Math.max(1, Math.round(frame.width * frame.ratio));
    picture.height = Math.round(height * frame.ratio);
    const ctx = picture.getContext('2d');
    if (ctx) {
      ctx.scale(frame.ratio, frame.ratio);
      ctx.fillStyle = frame.theme.ground;
      ctx.fillRect(0, 0, frame.width, height);
      paintMinimap(ctx, frame);
    }
    return picture;
  }
}
