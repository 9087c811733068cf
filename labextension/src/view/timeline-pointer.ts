/**
 * Wheel, drag, pinch and click on a timeline.
 */
import type { Picked } from '../layout/pick';
import { around, panned, timeOf, zoomed, type IRange } from '../layout/scale';
import type { Clock } from '../layout/timeline';
import type { Scope } from './scope';
import type { ITrace } from '../model/trace';
import type { Selection } from './selection';

/** What the pointer and the keys may do to a timeline. */
export interface IPlot {
  readonly node: HTMLElement;
  readonly trace: ITrace;
  readonly selection: Selection;
  readonly range: IRange;
  readonly whole: IRange;
  readonly clock: Clock;
  readonly width: number;
  readonly gutter: number;
  show(range: IRange, glide?: boolean): void;
  showPicked(): void;
  setClock(clock: Clock): void;
  find(query: string): number;
  scrollBy(pixels: number): void;
  under(x: number, y: number): Picked;
  flagUnder(x: number, y: number): number;
  isOnMinimap(y: number): boolean;
  hover(picked: Picked, x: number, y: number): void;
}

/** A press that moves less than this (px) is a click. */
const STILL = 4;
/** One notch of a wheel zooms by about a fifth. */
const WHEEL_ZOOM = 0.002;

export function listenToPointer(plot: IPlot, scope: Scope): void {
  const pointers = new Pointers(plot);
  scope.listen(plot.node, 'wheel', event => wheel(plot, event), { passive: false });
  scope.listen(plot.node, 'pointerdown', pointers.down);
  scope.listen(plot.node, 'pointermove', pointers.move);
  scope.listen(plot.node, 'pointerup', pointers.up);
  scope.listen(plot.node, 'pointercancel', pointers.up);
  scope.listen(plot.node, 'pointerleave', () => plot.hover(null, 0, 0));
  scope.listen(plot.node, 'dblclick', () => plot.showPicked());
}

/**
 * The wheel zooms with Ctrl (which is what a pinch on a touchpad sends) or once the timeline has the focus; until then the page scrolls on
 * under the pointer as everywhere else. Sideways, or with Shift, it pans.
 */
function wheel(plot: IPlot, event: WheelEvent): void {
  const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
  if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
    event.preventDefault();
    plot.show(panned(plot.range, plot.whole, (sideways / plot.width) * length(plot)));
  } else if (event.ctrlKey || event.metaKey || plot.node.ownerDocument.activeElement === plot.node) {
    event.preventDefault();
    const notch = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 33 : 1;
    const speed = event.ctrlKey ? 3 : 1;
    const x = event.clientX - plot.node.getBoundingClientRect().left - plot.gutter;
    zoomAt(plot, Math.exp(event.deltaY * notch * WHEEL_ZOOM * speed), x);
  }
}

function length(plot: IPlot): number {
  return plot.range.end - plot.range.begin;
}

function zoomAt(plot: IPlot, factor: number, x: number): void {
  plot.show(zoomed(plot.range, plot.whole, factor, timeOf(plot.range, plot.width, Math.max(x, 0))));
}

interface IPoint {
  readonly x: number;
  readonly y: number;
}

/** The fingers and the mouse on a plot: one drags, two pinch. */
class Pointers {
  constructor(private readonly _plot: IPlot) {}

  readonly down = (event: PointerEvent): void => {
    if (event.button !== 0) {
      return;
    }
    this._at.set(event.pointerId, this._point(event));
    this._from = this._point(event);
    this._moved = false;
    this._plot.node.setPointerCapture(event.pointerId);
    if (this._plot.isOnMinimap(this._from.y)) {
      this._jump(this._from.x);
    }
  };

  readonly move = (event: PointerEvent): void => {
    const point = this._point(event);
    const before = this._at.get(event.pointerId);
    if (before === undefined) {
      this._plot.hover(this._plot.under(point.x, point.y), point.x, point.y);
      return;
    }
    this._moved ||= Math.hypot(point.x - this._from.x, point.y - this._from.y) >= STILL;
    if (this._at.size === 2) {
      this._pinch(event.pointerId, before, point);
    } else if (this._moved) {
      this._drag(before, point);
    } else {
      return;
    }
    this._at.set(event.pointerId, point);
  };

  readonly up = (event: PointerEvent): void => {
    if (this._at.delete(event.pointerId) && !this._moved && event.type === 'pointerup') {
      this._click(this._point(event));
    }
  };

  private _point(event: PointerEvent): IPoint {
    const box = this._plot.node.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private _drag(before: IPoint, point: IPoint): void {
    const plot = this._plot;
    plot.hover(null, 0, 0);
    if (plot.isOnMinimap(this._from.y)) {
      this._jump(point.x);
      return;
    }
    plot.show(panned(plot.range, plot.whole, ((before.x - point.x) / plot.width) * length(plot)));
    plot.scrollBy(before.y - point.y);
  }

  /** Centres the view on a point of the minimap. */
  private _jump(x: number): void {
    const plot = this._plot;
    const time = timeOf(plot.whole, plot.width, x - plot.gutter);
    const half = length(plot) / 2;
    plot.show(around(time - half, time + half, plot.whole, 0));
  }

  private _pinch(id: number, before: IPoint, point: IPoint): void {
    const other = [...this._at].find(([key]) => key !== id)?.[1] ?? before;
    const apart = Math.max(Math.abs(point.x - other.x), 8);
    zoomAt(this._plot, Math.max(Math.abs(before.x - other.x), 8) / apart, (point.x + other.x) / 2 - this._plot.gutter);
  }

  private _click(point: IPoint): void {
    const { selection, trace } = this._plot;
    const finding = this._plot.flagUnder(point.x, point.y);
    const picked = this._plot.under(point.x, point.y);
    if (finding >= 0) {
      selection.pickFinding(finding);
    } else if (picked?.kind === 'op') {
      selection.pickOp(picked.op);
    } else if (picked?.kind === 'call') {
      selection.pickModule(trace.calls.module[picked.call]);
    } else if (!this._plot.isOnMinimap(point.y)) {
      selection.clear();
    }
  }

  private readonly _at = new Map<number, IPoint>();
  private _from: IPoint = { x: 0, y: 0 };
  private _moved = false;
}
