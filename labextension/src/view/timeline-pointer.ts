/**
 * Wheel, drag, pinch and click on a timeline.
 */
import type { Picked } from '../layout/pick';
import { CORNER, type IPoint } from '../layout/point';
import { findingAt, isOnMinimap, itemAt, minimapTime, timeAt } from '../layout/timeline-points';
import { centre, pan, plotWidth, showPicked, zoom, type ITimelineState } from '../layout/timeline-state';
import type { Disposables } from './disposables';
import type { Selection } from './selection';

/** A timeline as pointer, keys and tools see it. */
export interface IPlot {
  readonly node: HTMLElement;
  readonly selection: Selection;
  readonly state: ITimelineState;
  change(state: ITimelineState): void;
  /** Show the card of what is under the pointer. */
  hover(item: Picked, point: IPoint): void;
  /** Show the card of the picked op, and let it go where the op goes: the keys are at work. */
  follow(): void;
}

/** A press that moves less than this (px) is a click. */
const STILL = 4;
/** One notch of a wheel zooms by about a fifth. */
const WHEEL_ZOOM = 0.002;

export function listenToPointer(plot: IPlot, disposables: Disposables): void {
  const pointers = new Pointers(plot);
  disposables.listen(plot.node, 'wheel', event => wheel(plot, event), { passive: false });
  disposables.listen(plot.node, 'pointerdown', pointers.down);
  disposables.listen(plot.node, 'pointermove', pointers.move);
  disposables.listen(plot.node, 'pointerup', pointers.up);
  disposables.listen(plot.node, 'pointercancel', pointers.up);
  disposables.listen(plot.node, 'pointerleave', () => plot.hover(null, CORNER));
  disposables.listen(plot.node, 'dblclick', () => plot.change(showPicked(plot.state)));
}

/**
 * The wheel zooms with Ctrl (which is what a pinch on a touchpad sends) or once the timeline has the focus; until then the page scrolls on
 * under the pointer as everywhere else. Sideways, or with Shift, it pans.
 */
function wheel(plot: IPlot, event: WheelEvent): void {
  const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
  if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
    event.preventDefault();
    plot.change(pan(plot.state, sideways / plotWidth(plot.state)));
  } else if (event.ctrlKey || event.metaKey || plot.node.ownerDocument.activeElement === plot.node) {
    event.preventDefault();
    const notch = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 33 : 1;
    const speed = event.ctrlKey ? 3 : 1;
    const x = event.clientX - plot.node.getBoundingClientRect().left;
    zoomAt(plot, Math.exp(event.deltaY * notch * WHEEL_ZOOM * speed), x);
  }
}

function zoomAt(plot: IPlot, factor: number, x: number): void {
  plot.change(zoom(plot.state, factor, timeAt(plot.state, x)));
}

/** The fingers and the mouse on a plot: one drags, two pinch. */
class Pointers {
  /** By pointer its last point. */
  private readonly _points = new Map<number, IPoint>();
  private _from = CORNER;
  private _moved = false;

  constructor(private readonly _plot: IPlot) {}

  readonly down = (event: PointerEvent): void => {
    if (event.button !== 0) {
      return;
    }
    const point = this._point(event);
    this._points.set(event.pointerId, point);
    this._from = point;
    this._moved = false;
    this._plot.node.setPointerCapture(event.pointerId);
    if (isOnMinimap(this._plot.state, point)) {
      this._jump(point);
    }
  };

  readonly move = (event: PointerEvent): void => {
    const point = this._point(event);
    const before = this._points.get(event.pointerId);
    if (before === undefined) {
      this._plot.hover(this._itemAt(point), point);
      return;
    }
    this._moved ||= Math.hypot(point.x - this._from.x, point.y - this._from.y) >= STILL;
    if (this._points.size === 2) {
      this._pinch(event.pointerId, before, point);
    } else if (this._moved) {
      this._drag(before, point);
    } else {
      return;
    }
    this._points.set(event.pointerId, point);
  };

  readonly up = (event: PointerEvent): void => {
    if (this._points.delete(event.pointerId) && !this._moved && event.type === 'pointerup') {
      this._click(this._point(event));
    }
  };

  private _point(event: PointerEvent): IPoint {
    const box = this._plot.node.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private _itemAt(point: IPoint): Picked {
    return itemAt(this._plot.state, point, this._plot.node.scrollTop);
  }

  private _drag(before: IPoint, point: IPoint): void {
    const plot = this._plot;
    plot.hover(null, point);
    if (isOnMinimap(plot.state, this._from)) {
      this._jump(point);
      return;
    }
    plot.change(pan(plot.state, (before.x - point.x) / plotWidth(plot.state)));
    plot.node.scrollTop += before.y - point.y;
  }

  /** Centre the view on a point of the minimap. */
  private _jump({ x }: IPoint): void {
    const { state } = this._plot;
    this._plot.change(centre(state, minimapTime(state, x)));
  }

  private _pinch(id: number, before: IPoint, point: IPoint): void {
    const other = [...this._points].find(([key]) => key !== id)?.[1] ?? before;
    const apart = Math.max(Math.abs(point.x - other.x), 8);
    zoomAt(this._plot, Math.max(Math.abs(before.x - other.x), 8) / apart, (point.x + other.x) / 2);
  }

  private _click(point: IPoint): void {
    const { selection, state } = this._plot;
    const finding = findingAt(state, point);
    const item = this._itemAt(point);
    if (finding >= 0) {
      selection.pickFinding(finding);
    } else if (item?.kind === 'op') {
      selection.pickOp(item.op);
    } else if (item?.kind === 'call') {
      selection.pickModule(state.timeline.trace.calls.module[item.call]);
    } else if (!isOnMinimap(state, point)) {
      selection.clear();
    }
  }
}
