/**
 * The timeline in the page: it holds the newest state, listens, and paints.
 */
import { opSentence } from '../layout/describe';
import { momentAt } from '../layout/folds';
import type { Picked } from '../layout/pick';
import { CORNER, type IPoint } from '../layout/point';
import { pinsOf, pointOfOp, scrollToOp } from '../layout/timeline-points';
import { grow, gutterOf, hover, pick, resize, startTimeline, type ITimelineState } from '../layout/timeline-state';
import { formatTime } from '../layout/units';
import type { IPicked } from '../model/picks';
import type { ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { Card } from './card';
import { Disposables } from './disposables';
import { h } from './dom';
import type { Selection } from './selection';
import type { Theme } from './theme';
import { TimelineCanvas, type IFrameContent } from './timeline-canvas';
import { listenToKeys } from './timeline-keys';
import { listenToPointer, type IPlot } from './timeline-pointer';
import { timelineTools } from './timeline-tools';

/** The plot grows with its lanes up to this height (px), then scrolls. */
const MOST_HEIGHT = 460;

export function mountTimeline(el: HTMLElement, trace: ITrace, selection: Selection, theme: Theme): () => void {
  return new TimelineView(el, trace, selection, theme).dispose;
}

export interface IGrowing {
  /** Go on with a longer trace of the same ops; a view of the whole, or of its end, follows. */
  readonly update: (trace: ITrace) => void;
  readonly dispose: () => void;
}

export function mountGrowing(el: HTMLElement, trace: ITrace, selection: Selection, theme: Theme): IGrowing {
  const view = new TimelineView(el, trace, selection, theme);
  return { update: view.update, dispose: view.dispose };
}

class TimelineView implements IPlot {
  readonly node: HTMLElement;
  private _state: ITimelineState;
  private readonly _disposables = new Disposables();
  readonly dispose = this._disposables.dispose;
  private readonly _root: HTMLElement;
  private readonly _canvas: TimelineCanvas;
  private readonly _spacer: HTMLElement;
  private readonly _readout: HTMLElement;
  private readonly _card: Card;
  /** The card is the picked op's, not that of what is under the pointer. */
  private _isFollowing = false;

  constructor(
    el: HTMLElement,
    trace: ITrace,
    readonly selection: Selection,
    theme: Theme
  ) {
    this._state = startTimeline(trace, selection.picked);
    this._root = h(el, 'div', { class: 'dt-timeline', data: { devtrace: 'timeline' } });
    this._canvas = new TimelineCanvas(this._root, theme, () => this._content());
    this._spacer = h(el, 'div', { class: 'dt-spacer' });
    this.node = plotElement(this._root, this._state, this._canvas.node, this._spacer);
    this._readout = h(el, 'p', { class: 'dt-hidden', role: 'status' });
    const frame = h(el, 'div', { class: 'dt-plot-frame' }, this.node);
    this._card = new Card(trace, frame);
    frame.append(this._card.node);
    this._root.append(timelineTools(this._root, this, this._disposables), frame, this._readout);
    el.append(this._root);
    this._listen(theme);
  }

  get state(): ITimelineState {
    return this._state;
  }

  change(state: ITimelineState): void {
    if (state !== this._state) {
      this._state = state;
      this._canvas.redraw();
    }
  }

  readonly update = (trace: ITrace): void => {
    this.selection.grow(trace);
    this._card.grow(trace);
    this.change(grow(this._state, trace));
    this._resize();
  };

  hover(item: Picked, point: IPoint): void {
    this._isFollowing = false;
    if (item === null) {
      this._card.hide();
    } else if (item.kind === 'op') {
      this._card.showOp(item.op, point);
    } else {
      this._card.showCall(item.call, point);
    }
    this.change(hover(this._state, item?.kind === 'op' ? item.op : -1));
  }

  follow(): void {
    this.hover(null, CORNER);
    this._isFollowing = true;
    this._canvas.redraw();
  }

  private _listen(theme: Theme): void {
    const disposables = this._disposables;
    disposables.onResize(this.node, () => this._resize());
    disposables.add(this._canvas.dispose);
    disposables.remove(this._root);
    disposables.listen(this.node, 'scroll', this._canvas.redraw, { passive: true });
    theme.changed.add(disposables, this._canvas.forgetColours);
    this.selection.changed.add(disposables, picked => this._pick(picked));
    disposables.listen(this.node, 'blur', () => this.hover(null, CORNER));
    listenToPointer(this, disposables);
    listenToKeys(this, disposables);
  }

  private _pick(picked: IPicked): void {
    const { op } = picked;
    this.change(pick(this._state, picked));
    if (op >= 0) {
      this._readout.textContent = opSentence(this._state.timeline.trace, op).slice(0, 500);
      this.node.scrollTop = scrollToOp(this._state, op, this.node.scrollTop, this.node.clientHeight);
    }
  }

  private _moveCard(): void {
    const { op } = this._state.picked;
    const point = op < 0 ? null : pointOfOp(this._state, op, this.node.scrollTop, this.node.clientHeight);
    if (point === null) {
      this._card.hide();
    } else {
      this._card.showOp(op, point);
    }
  }

  private _resize(): void {
    const { timeline, stack } = this._state;
    const whole = timeline.header.height + stack.height;
    const height = Math.min(whole, MOST_HEIGHT);
    this.node.style.height = `${height}px`;
    this._spacer.style.height = `${whole - height}px`;
    this._canvas.resize(this.node.clientWidth, height);
    this.change(resize(this._state, this._canvas.width));
  }

  private _content(): IFrameContent {
    if (this._isFollowing) {
      this._moveCard();
    }
    const { timeline, stack, range, picked, hovered, found } = this._state;
    const { op: selected, finding, module } = picked;
    return {
      timeline,
      stack,
      range,
      scrolled: this.node.scrollTop,
      gutter: gutterOf(this._state),
      marks: { selected, finding, hovered, module, pins: pinsOf(this._state), found: found?.tracks ?? null }
    };
  }
}

function plotElement(owner: Node, state: ITimelineState, ...children: Node[]): HTMLElement {
  const role = sentence(state.timeline.trace.language, 'timeline.role');
  const properties = {
    class: 'dt-plot',
    role: 'application',
    attributes: { tabindex: '0' },
    aria: { label: labelOf(state), roledescription: role }
  };
  return h(owner, 'div', properties, ...children);
}

function labelOf({ timeline }: ITimelineState): string {
  const { trace, whole, folds } = timeline;
  const time = formatTime(momentAt(folds, whole.end) - momentAt(folds, whole.begin));
  const counts = { ops: trace.ops.length, devices: trace.devices.length };
  return sentence(trace.language, 'timeline.label', { ...counts, time });
}
