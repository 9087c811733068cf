/**
 * The timeline: one canvas, painted once a frame at most, and what the user does with it.
 */
import { opSentence } from '../layout/describe';
import { EVERYTHING, filterOps } from '../layout/filter';
import { isWithin } from '../layout/header';
import { pickAt, type Picked } from '../layout/pick';
import { around, xOf, type IRange } from '../layout/scale';
import { buildStack, type IStack } from '../layout/stack';
import { buildTimeline, type Clock, type ITimeline } from '../layout/timeline';
import { buildTracks, type ITracks } from '../layout/tracks';
import { counted, formatTime } from '../layout/units';
import type { ITrace } from '../model/trace';
import type { IDevicePaint, IFlag, IFrame, ITheme } from '../paint/context';
import { paintFrame } from '../paint/frame';
import { paintMinimap } from '../paint/header';
import { severityLook } from '../paint/palette';
import { Card } from './card';
import { h } from './dom';
import { Scope } from './scope';
import type { Selection } from './selection';
import { devicePaints, readTheme } from './theme';
import { listenToPointer, type IPlot } from './timeline-pointer';
import { listenToKeys } from './timeline-keys';
import { timelineTools } from './timeline-tools';

/** The plot grows with its lanes up to this height (px), then scrolls. */
const MOST_HEIGHT = 460;
/** Flags beyond this many would hide each other. */
const MOST_FLAGS = 1000;
/** Zooming to an op shows this many before and after it. */
const NEIGHBOURS = 6;
/** How long (ms) a jump to another stretch takes, so that the eye can follow. */
const GLIDE = 160;

export function mountTimeline(el: HTMLElement, trace: ITrace, selection: Selection): () => void {
  return new TimelineView(el, trace, selection).dispose;
}

export interface IGrowing {
  /** Goes on with a longer trace of the same ops; a view of the whole, or of its end, follows. */
  readonly update: (trace: ITrace) => void;
  readonly dispose: () => void;
}

export function mountGrowing(el: HTMLElement, trace: ITrace, selection: Selection): IGrowing {
  const view = new TimelineView(el, trace, selection);
  return { update: view.update, dispose: view.dispose };
}

class TimelineView implements IPlot {
  constructor(
    el: HTMLElement,
    public trace: ITrace,
    readonly selection: Selection
  ) {
    this._timeline = buildTimeline(trace, 'time');
    this._stack = buildStack(this._timeline);
    this._range = this._timeline.whole;
    this._root = h(el, 'div', { class: 'dt-timeline', data: { devtrace: 'timeline' } });
    this._canvas = h(el, 'canvas', { class: 'dt-canvas', aria: { hidden: 'true' } });
    this._spacer = h(el, 'div', { class: 'dt-spacer' });
    this.node = h(
      el,
      'div',
      {
        class: 'dt-plot',
        role: 'application',
        attributes: { tabindex: '0' },
        aria: { label: this._label(), roledescription: 'timeline' }
      },
      this._canvas,
      this._spacer
    );
    this._readout = h(el, 'p', { class: 'dt-hidden', role: 'status' });
    const frame = h(el, 'div', { class: 'dt-plot-frame' }, this.node);
    this._card = new Card(trace, frame);
    frame.append(this._card.node);
    this._root.append(timelineTools(this._root, this, this._scope), frame, this._readout);
    el.append(this._root);
    this._scope.add(() => {
      this._root.remove();
    });
    this._listen();
  }

  get dispose(): () => void {
    return this._scope.dispose;
  }

  get range(): IRange {
    return this._range;
  }

  get whole(): IRange {
    return this._timeline.whole;
  }

  get clock(): Clock {
    return this._timeline.clock;
  }

  /** Width of the plot without the labels. */
  get width(): number {
    return Math.max(this._width - this.gutter, 1);
  }

  get gutter(): number {
    return this._width < 620 ? 84 : 128;
  }

  /** Shows a stretch of time, at once or gliding there. */
  show(range: IRange, glide = false): void {
    this._glide = glide && !this._isStill() ? { from: this._range, to: range, since: performance.now() } : null;
    if (!this._glide) {
      this._range = range;
    }
    this.redraw();
  }

  setClock(clock: Clock): void {
    this._timeline = buildTimeline(this.trace, clock);
    this._range = this._timeline.whole;
    this._minimap = null;
    this.find(this._query);
    this.redraw();
  }

  readonly update = (trace: ITrace): void => {
    const { begin, end } = this._timeline.whole;
    const { begin: left, end: right } = this._range;
    this.trace = trace;
    this.selection.grow(trace);
    this._card.grow(trace);
    this._timeline = buildTimeline(trace, this.clock);
    this._stack = buildStack(this._timeline);
    const { whole } = this._timeline;
    if (left <= begin && right >= end) {
      this._range = whole;
    } else if (right >= end) {
      this._range = { begin: whole.end - (right - left), end: whole.end };
    }
    this._minimap = null;
    this.find(this._query);
    this._resize();
  };

  /** Lets the ops that do not match fade; the result is how many match. */
  find(query: string): number {
    this._query = query;
    if (query.trim() === '') {
      this._found = null;
      this.redraw();
      return 0;
    }
    const ops = filterOps(this.trace, { ...EVERYTHING, text: query });
    this._found = this._tracksOf(ops);
    this.redraw();
    return ops.length;
  }

  /** Makes room for what is picked. */
  showPicked(): void {
    const span = this._pickedSpan();
    if (span) {
      this.show(around(span[0], span[1], this.whole, 0.1), true);
    }
  }

  scrollBy(pixels: number): void {
    this.node.scrollTop += pixels;
  }

  /** What is under a point of the plot (px from the canvas's corner). */
  under(x: number, y: number): Picked {
    if (x < this.gutter || y < this._timeline.header.height) {
      return null;
    }
    const view = { timeline: this._timeline, stack: this._stack, range: this._range, width: this.width };
    return pickAt(view, x - this.gutter, y - this._timeline.header.height + this.node.scrollTop);
  }

  /** The finding whose pin is under a point, -1 for none. */
  flagUnder(x: number, y: number): number {
    const near = (op: number): boolean =>
      Math.abs(xOf(this._range, this.width, this._timeline.start[op]) + this.gutter - x) <= 8;
    return isWithin(this._timeline.header.flags, y)
      ? (this.trace.findings ?? []).findIndex(({ ops }) => ops.some(near))
      : -1;
  }

  isOnMinimap(y: number): boolean {
    return isWithin(this._timeline.header.minimap, y);
  }

  hover(picked: Picked, x: number, y: number): void {
    const op = picked?.kind === 'op' ? picked.op : -1;
    if (picked === null) {
      this._card.hide();
    } else if (picked.kind === 'op') {
      this._card.showOp(picked.op, x, y);
    } else {
      this._card.showCall(picked.call, x, y);
    }
    if (op !== this._hovered) {
      this._hovered = op;
      this.redraw();
    }
  }

  readonly redraw = (): void => {
    if (this._frame === 0 && !this._scope.isDisposed) {
      this._frame = requestAnimationFrame(this._paint);
    }
  };

  readonly node: HTMLElement;

  private _listen(): void {
    const resized = new ResizeObserver(() => {
      this._resize();
    });
    resized.observe(this.node);
    this._scope.add(() => {
      resized.disconnect();
      cancelAnimationFrame(this._frame);
    });
    this._scope.listen(this.node, 'scroll', this.redraw, { passive: true });
    this._scope.listen(this._root, 'dt-theme', () => {
      this._theme = null;
      this.redraw();
    });
    this._scope.add(
      this.selection.subscribe(() => {
        this._showSelection();
      })
    );
    listenToPointer(this, this._scope);
    listenToKeys(this, this._scope);
  }

  private _showSelection(): void {
    const { op, finding } = this.selection.picked;
    if (op >= 0) {
      this._readout.textContent = opSentence(this.trace, op).slice(0, 500);
      this._reveal(op, finding >= 0);
    }
    this.redraw();
  }

  /** Brings an op into view: by panning when that is enough, closer when it would be a speck. */
  private _reveal(op: number, close: boolean): void {
    const begin = this._timeline.start[op];
    const end = this._timeline.end[op];
    const pixels = ((end - begin) / (this._range.end - this._range.begin)) * this.width;
    const isIn = begin >= this._range.begin && end <= this._range.end;
    if (close && pixels < 2 && this.trace.ops.length > 500) {
      this.show(around(begin, end, this.whole, 20), true);
    } else if (!isIn) {
      const half = (this._range.end - this._range.begin) / 2;
      this.show(around(begin - half, begin + half, this.whole, 0), true);
    }
    const row = this._stack.lanes[this._timeline.lanes.laneOf[op]];
    const room = this.node.clientHeight - this._timeline.header.height;
    if (row.y < this.node.scrollTop || row.y + row.height > this.node.scrollTop + room) {
      this.node.scrollTop = row.y - room / 2;
    }
  }

  private _pickedSpan(): readonly [number, number] | null {
    const { op, module } = this.selection.picked;
    const { start, end, calls } = this._timeline;
    if (op >= 0) {
      return [start[Math.max(op - NEIGHBOURS, 0)], end[Math.min(op + NEIGHBOURS, end.length - 1)]];
    }
    const at = calls.tracks.order.findIndex(call => this.trace.calls.module[call] === module);
    return module >= 0 && at >= 0 ? [calls.tracks.start[at], calls.tracks.end[at]] : null;
  }

  private _tracksOf(ops: Uint32Array): ITracks {
    const { laneOf, lanes } = this._timeline.lanes;
    const row = new Int32Array(laneOf.length).fill(-1);
    for (const op of ops) {
      row[op] = laneOf[op];
    }
    return buildTracks(row, lanes.length, this._timeline.start, this._timeline.end);
  }

  private _resize(): void {
    const { clientWidth } = this.node;
    const height = Math.min(this._timeline.header.height + this._stack.height, MOST_HEIGHT);
    this.node.style.height = `${height}px`;
    this._spacer.style.height = `${this._timeline.header.height + this._stack.height - height}px`;
    if (clientWidth > 0 && (clientWidth !== this._width || height !== this._height)) {
      this._width = clientWidth;
      this._height = height;
      this._minimap = null;
    }
    this.redraw();
  }

  private readonly _paint = (now: number): void => {
    this._frame = 0;
    if (this._width === 0) {
      return;
    }
    this._step(now);
    const ratio = this._canvas.ownerDocument.defaultView?.devicePixelRatio ?? 1;
    this._fit(ratio);
    const ctx = this._canvas.getContext('2d', { alpha: false });
    if (!ctx) {
      return;
    }
    const frame = this._makeFrame(ratio);
    this._minimap ??= this._drawMinimap(frame);
    const minimap = this._minimap;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintFrame(ctx, frame, () => {
      ctx.drawImage(minimap, 0, 0, frame.width, this._timeline.header.minimap.height);
    });
    this._root.dataset['ready'] = 'true';
  };

  private _step(now: number): void {
    if (this._glide) {
      const { from, to, since } = this._glide;
      const share = Math.min(Math.max((now - since) / GLIDE, 0), 1);
      const eased = 1 - (1 - share) ** 3;
      const mix = (a: number, b: number): number => a + (b - a) * eased;
      this._range = share === 1 ? to : { begin: mix(from.begin, to.begin), end: mix(from.end, to.end) };
      this._glide = share === 1 ? null : this._glide;
      this.redraw();
    }
  }

  private _fit(ratio: number): void {
    const width = Math.round(this._width * ratio);
    const height = Math.round(this._height * ratio);
    if (this._canvas.width !== width || this._canvas.height !== height || this._ratio !== ratio) {
      this._canvas.width = width;
      this._canvas.height = height;
      this._canvas.style.width = `${this._width}px`;
      this._canvas.style.height = `${this._height}px`;
      this._ratio = ratio;
      this._theme = null;
    }
  }

  private _makeFrame(ratio: number): IFrame {
    if (this._theme === null) {
      this._theme = readTheme(this._root);
      this._devices = devicePaints(this._root, this.trace, this._theme.dark, ratio);
      this._flags = flagsOf(this.trace, this._theme.dark);
      this._minimap = null;
    }
    const { op, module, finding } = this.selection.picked;
    return {
      timeline: this._timeline,
      stack: this._stack,
      range: this._range,
      scrolled: this.node.scrollTop,
      width: this.width,
      height: this._height,
      gutter: this.gutter,
      ratio,
      theme: this._theme,
      devices: this._devices,
      marks: { selected: op, finding, hovered: this._hovered, module, flags: this._flags, found: this._found }
    };
  }

  private _drawMinimap(frame: IFrame): HTMLCanvasElement {
    const picture = this._canvas.ownerDocument.createElement('canvas');
    picture.width = Math.max(1, Math.round(frame.width * frame.ratio));
    picture.height = Math.round(this._timeline.header.minimap.height * frame.ratio);
    const ctx = picture.getContext('2d');
    if (ctx) {
      ctx.scale(frame.ratio, frame.ratio);
      ctx.fillStyle = frame.theme.ground;
      ctx.fillRect(0, 0, frame.width, this._timeline.header.minimap.height);
      paintMinimap(ctx, frame);
    }
    return picture;
  }

  private _isStill(): boolean {
    return this.node.ownerDocument.defaultView?.matchMedia('(prefers-reduced-motion: reduce)').matches ?? true;
  }

  private _label(): string {
    const { ops, devices } = this.trace;
    const time = formatTime(this.whole.end - this.whole.begin);
    return `Timeline of ${counted(ops.length, 'op')} on ${counted(devices.length, 'device')} over ${time}`;
  }

  private _timeline: ITimeline;
  private _stack: IStack;
  private _range: IRange;
  private _glide: { readonly from: IRange; readonly to: IRange; readonly since: number } | null = null;
  private _query = '';
  private _found: ITracks | null = null;
  private _hovered = -1;
  private _frame = 0;
  private _width = 0;
  private _height = 0;
  private _ratio = 0;
  private _theme: ITheme | null = null;
  private _devices: IDevicePaint[] = [];
  private _flags: IFlag[] = [];
  private _minimap: HTMLCanvasElement | null = null;
  private readonly _scope = new Scope();
  private readonly _root: HTMLElement;
  private readonly _canvas: HTMLCanvasElement;
  private readonly _spacer: HTMLElement;
  private readonly _readout: HTMLElement;
  private readonly _card: Card;
}

/** A flag for each op of each finding, in the order of time. */
function flagsOf(trace: ITrace, dark: boolean): IFlag[] {
  const flags = (trace.findings ?? []).flatMap(({ ops, severity }) => {
    const { fill, sign } = severityLook(severity, dark);
    return ops.slice(0, MOST_FLAGS).map(op => ({ op, severity, colour: fill, sign }));
  });
  return flags.sort((a, b) => a.op - b.op).slice(0, MOST_FLAGS);
}
