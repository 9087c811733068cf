/**
 * A recording while it runs: how far it is, on which devices, a timeline that grows, and a button that stops it.
 */
import { formatBytes, counted, formatTime } from '../layout/units';
import type { LiveOps } from '../model/live';
import { deviceName } from '../model/trace';
import { button, h } from './dom';
import { Scope } from './scope';
import { Selection } from './selection';
import { followTheme } from './theme';
import { mountGrowing, type IGrowing } from './timeline';

/** Building a timeline may take this share of the time: a long one is built less often. */
const SHARE = 0.2;

export interface ILive {
  /** Shows what arrived. */
  readonly update: () => void;
  readonly dispose: () => void;
}

export function mountLive(el: HTMLElement, ops: LiveOps, stop: () => void): ILive {
  const view = new LiveTimeline(el, ops, stop);
  return { update: view.update, dispose: view.dispose };
}

class LiveTimeline {
  constructor(
    el: HTMLElement,
    private readonly _ops: LiveOps,
    stop: () => void
  ) {
    this._root = h(el, 'section', {
      class: 'dt-root dt-live',
      aria: { label: 'devtrace live timeline' },
      data: { devtrace: 'live' }
    });
    this._told = h(el, 'span', { class: 'dt-fact', role: 'status' });
    this._stop = button(el, 'Stop', { class: 'dt-stop', title: 'Interrupt the cell' });
    this._slot = h(el, 'div');
    const grow = h(el, 'span', { class: 'dt-grow' });
    this._root.append(h(el, 'header', { class: 'dt-summary' }, this._told, grow, this._stop), this._slot);
    el.append(this._root);
    this._scope.listen(this._stop, 'click', stop);
    this._scope.add(() => {
      clearTimeout(this._timer);
      this._end();
      this._root.remove();
    });
    this.update();
    this._root.dataset['ready'] = 'true';
  }

  readonly update = (): void => {
    const { progress, title, isRunning } = this._ops;
    const facts = [
      title.slice(0, 80),
      isRunning ? 'running' : progress.ops > 0 ? 'done' : 'waiting for a traced cell',
      ...(progress.ops > 0 ? [counted(progress.ops, 'op'), formatTime(progress.seconds * 1e9)] : []),
      ...progress.counts.slice(0, 8).map(([device, ops]) => `${device.slice(0, 40)} ${counted(ops, 'op')}`),
      progress.copied > 0 ? `${formatBytes(progress.copied)} copied` : ''
    ];
    this._told.textContent = facts.filter(fact => fact !== '').join('  ·  ');
    this._stop.disabled = !isRunning;
    this._root.dataset['opCount'] = String(progress.ops);
    if (this._timer === 0 && progress.ops > 0) {
      this._timer = window.setTimeout(this._build, this._wait);
    }
  };

  get dispose(): () => void {
    return this._scope.dispose;
  }

  private readonly _build = (): void => {
    const begin = performance.now();
    this._timer = 0;
    const trace = this._ops.trace();
    const devices = Array.from({ length: trace.devices.length }, (_, id) => deviceName(trace, id)).join();
    // Colours belong to devices by id: a timeline that meets others, as the next recording may have, is made anew.
    if (this._timeline === null || devices !== this._devices) {
      this._end();
      this._devices = devices;
      this._inner = new Scope();
      followTheme(this._root, trace, this._inner, () => {
        this._slot.firstElementChild?.dispatchEvent(new Event('dt-theme'));
      });
      this._timeline = mountGrowing(this._slot, trace, new Selection(trace));
    } else {
      this._timeline.update(trace);
    }
    this._wait = (performance.now() - begin) / SHARE;
  };

  private _end(): void {
    this._timeline?.dispose();
    this._inner.dispose();
    this._timeline = null;
  }

  private _timeline: IGrowing | null = null;
  private _devices = '';
  private _timer = 0;
  private _wait = 0;
  private _inner = new Scope();
  private readonly _scope = new Scope();
  private readonly _root: HTMLElement;
  private readonly _told: HTMLElement;
  private readonly _stop: HTMLButtonElement;
  private readonly _slot: HTMLElement;
}
