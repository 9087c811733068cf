/**
 * The timeline: which stretch of a trace is in view, and what the user does with it.
 */
import { opSentence } from '../layout/describe';
import { EVERYTHING, filterOps } from '../layout/filter';
import { flagsOf, pinsIn, type IFlag, type IPin } from '../layout/flags';
import { isWithin } from '../layout/header';
import { pickAt, type Picked } from '../layout/pick';
import { closeTo, grown, revealing } from '../layout/reveal';
import type { IRange } from '../layout/scale';
import { buildStack, type IStack } from '../layout/stack';
import { buildTimeline, type Clock, type ITimeline } from '../layout/timeline';
import { buildTracks, type ITracks } from '../layout/tracks';
import { counted, formatTime } from '../layout/units';
import type { ITrace } from '../model/trace';
import { Card } from './card';
import { h } from './dom';
import { Glide } from './glide';
import { Scope } from './scope';
import type { Selection } from './selection';
import { TimelineCanvas, type IScene } from './timeline-canvas';
import { listenToPointer, type IPlot } from './timeline-pointer';
import { listenToKeys } from './timeline-keys';
import { timelineTools } from './timeline-tools';

/** The plot grows with its lanes up to this height (px), then scrolls. */
const MOST_HEIGHT = 460;
/** How near (px) to a pin a click is meant for it. */
const NEAR = 8;
/** Narrower plots (px) have less room for labels. */
const NARROW = 620;

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
    this._canvas = new TimelineCanvas(this._root, now => this._scene(now));
    this._spacer = h(el, 'div', { class: 'dt-spacer' });
    this.node = plotElement(this._root, labelOf(trace, this.whole), this._canvas.node, this._spacer);
    this._readout = h(el, 'p', { class: 'dt-hidden', role: 'status' });
    const frame = h(el, 'div', { class: 'dt-plot-frame' }, this.node);
    this._card = new Card(trace, frame);
    frame.append(this._card.node);
    this._root.append(timelineTools(this._root, this, this._scope), frame, this._readout);
    el.append(this._root);
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
    return Math.max(this._canvas.width - this.gutter, 1);
  }

  get gutter(): number {
    return this._canvas.width < NARROW ? 84 : 128;
  }

  /** Shows a stretch of time, at once or gliding there. */
  show(range: IRange, glide = false): void {
    this._glide = glide && !this._isStill() ? new Glide(this._range, range, performance.now()) : null;
    if (!this._glide) {
      this._range = range;
    }
    this.redraw();
  }

  setClock(clock: Clock): void {
    this._timeline = buildTimeline(this.trace, clock);
    this._range = this._timeline.whole;
    this._canvas.forgetMinimap();
    this.find(this._query);
  }

  readonly update = (trace: ITrace): void => {
    const before = this.whole;
    this.trace = trace;
    this.selection.grow(trace);
    this._card.grow(trace);
    this._timeline = buildTimeline(trace, this.clock);
    this._stack = buildStack(this._timeline);
    this._range = grown(this._range, before, this.whole);
    this._canvas.forgetMinimap();
    this.find(this._query);
    this._resize();
  };

  /** Lets the ops that do not match fade; the result is how many match. */
  find(query: string): number {
    this._query = query;
    const isAsked = query.trim() !== '';
    const ops = isAsked ? filterOps(this.trace, { ...EVERYTHING, text: query }) : new Uint32Array();
    this._found = isAsked ? this._tracksOf(ops) : null;
    this.redraw();
    return ops.length;
  }

  /** Makes room for what is picked. */
  showPicked(): void {
    const { op, module } = this.selection.picked;
    const range = closeTo(this._timeline, op, module);
    if (range) {
      this.show(range, true);
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
    const pins = isWithin(this._timeline.header.flags, y) ? this._pins() : [];
    return pins.find(pin => Math.abs(pin.x + this.gutter - x) <= NEAR)?.finding ?? -1;
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
    this._canvas.redraw();
  };

  readonly node: HTMLElement;

  private _listen(): void {
    const resized = new ResizeObserver(() => {
      this._resize();
    });
    resized.observe(this.node);
    this._scope.add(() => {
      resized.disconnect();
      this._canvas.dispose();
      this._root.remove();
    });
    this._scope.listen(this.node, 'scroll', this.redraw, { passive: true });
    this._scope.listen(this._root, 'dt-theme', this._canvas.forgetColours);
    this._scope.add(
      this.selection.subscribe(() => {
        this._showSelection();
      })
    );
    this._flags = flagsOf(this.trace, this.selection.picked.finding);
    listenToPointer(this, this._scope);
    listenToKeys(this, this._scope);
  }

  private _showSelection(): void {
    const { op, finding } = this.selection.picked;
    this._flags = flagsOf(this.trace, finding);
    if (op >= 0) {
      this._readout.textContent = opSentence(this.trace, op).slice(0, 500);
      this._reveal(op, finding >= 0);
    }
    this.redraw();
  }

  private _reveal(op: number, close: boolean): void {
    const range = revealing(this._timeline, this._range, this.width, op, close);
    if (range) {
      this.show(range, true);
    }
    const row = this._stack.lanes[this._timeline.lanes.laneOf[op]];
    const room = this.node.clientHeight - this._timeline.header.height;
    if (row.y < this.node.scrollTop || row.y + row.height > this.node.scrollTop + room) {
      this.node.scrollTop = row.y - room / 2;
    }
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
    const whole = this._timeline.header.height + this._stack.height;
    const height = Math.min(whole, MOST_HEIGHT);
    this.node.style.height = `${height}px`;
    this._spacer.style.height = `${whole - height}px`;
    this._canvas.resize(this.node.clientWidth, height);
  }

  private _scene(now: number): IScene {
    this._step(now);
    const { op, module, finding } = this.selection.picked;
    return {
      timeline: this._timeline,
      stack: this._stack,
      range: this._range,
      scrolled: this.node.scrollTop,
      gutter: this.gutter,
      marks: { selected: op, finding, hovered: this._hovered, module, pins: this._pins(), found: this._found }
    };
  }

  private _step(now: number): void {
    if (this._glide) {
      this._range = this._glide.at(now);
      this._glide = this._glide.isOver(now) ? null : this._glide;
      this.redraw();
    }
  }

  private _pins(): IPin[] {
    return pinsIn(this._flags, this._timeline.start, this._range, this.width);
  }

  private _isStill(): boolean {
    return this.node.ownerDocument.defaultView?.matchMedia('(prefers-reduced-motion: reduce)').matches ?? true;
  }

  private _timeline: ITimeline;
  private _stack: IStack;
  private _range: IRange;
  private _flags: readonly IFlag[] = [];
  private _glide: Glide | null = null;
  private _query = '';
  private _found: ITracks | null = null;
  private _hovered = -1;
  private readonly _scope = new Scope();
  private readonly _root: HTMLElement;
  private readonly _canvas: TimelineCanvas;
  private readonly _spacer: HTMLElement;
  private readonly _readout: HTMLElement;
  private readonly _card: Card;
}

function plotElement(owner: Node, label: string, ...children: Node[]): HTMLElement {
  const properties = {
    class: 'dt-plot',
    role: 'application',
    attributes: { tabindex: '0' },
    aria: { label, roledescription: 'timeline' }
  };
  return h(owner, 'div', properties, ...children);
}

function labelOf({ ops, devices }: ITrace, whole: IRange): string {
  const time = formatTime(whole.end - whole.begin);
  return `Timeline of ${counted(ops.length, 'op')} on ${counted(devices.length, 'device')} over ${time}`;
}
