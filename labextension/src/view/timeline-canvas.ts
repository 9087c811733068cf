/**
 * The canvas of a timeline: as large as its plot, in the colours of the page, painted once a frame at most.
 */
import type { IRange } from '../layout/scale';
import type { IStack } from '../layout/stack';
import type { ITimeline } from '../layout/timeline';
import type { IDevicePaint, IFrame, IMarks, ITheme } from '../paint/context';
import { paintFrame } from '../paint/frame';
import { paintMinimap } from '../paint/header';
import { h } from './dom';
import { devicePaints, readTheme } from './theme';

/** What a frame shows. */
export interface IScene {
  readonly timeline: ITimeline;
  readonly stack: IStack;
  readonly range: IRange;
  readonly scrolled: number;
  readonly gutter: number;
  readonly marks: IMarks;
}

export class TimelineCanvas {
  /** `scene` is asked at each frame; `root` is marked as ready once something is painted. */
  constructor(
    private readonly _root: HTMLElement,
    private readonly _scene: (now: number) => IScene
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
      this.forgetMinimap();
    }
    this.redraw();
  }

  /** The ops are no longer those of the small picture of the whole. */
  forgetMinimap(): void {
    this._minimap = null;
  }

  readonly forgetColours = (): void => {
    this._theme = null;
    this.redraw();
  };

  readonly dispose = (): void => {
    this._isDisposed = true;
    cancelAnimationFrame(this._frame);
  };

  get width(): number {
    return this._width;
  }

  readonly node: HTMLCanvasElement;

  private readonly _paint = (now: number): void => {
    this._frame = 0;
    const ctx = this._width === 0 ? null : this.node.getContext('2d', { alpha: false });
    if (!ctx) {
      return;
    }
    const ratio = this.node.ownerDocument.defaultView?.devicePixelRatio ?? 1;
    this._fit(ratio);
    const frame = this._makeFrame(this._scene(now), ratio);
    this._minimap ??= this._drawMinimap(frame);
    const minimap = this._minimap;
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
      this._theme = null;
    }
  }

  private _makeFrame(scene: IScene, ratio: number): IFrame {
    if (this._theme === null) {
      this._theme = readTheme(this._root);
      this._devices = devicePaints(this._root, scene.timeline.trace, this._theme.dark, ratio);
      this.forgetMinimap();
    }
    const size = { width: Math.max(this._width - scene.gutter, 1), height: this._height, ratio };
    return { ...scene, ...size, theme: this._theme, devices: this._devices };
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

  private _frame = 0;
  private _isDisposed = false;
  private _width = 0;
  private _height = 0;
  private _ratio = 0;
  private _theme: ITheme | null = null;
  private _devices: IDevicePaint[] = [];
  private _minimap: HTMLCanvasElement | null = null;
}
