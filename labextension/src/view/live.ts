/**
 * A recording while it runs: how far it is, on which devices, a timeline that grows, and a button that stops it.
 */
import { formatBytes, formatTime } from '../layout/units';
import type { LiveOps } from '../model/live';
import { deviceName } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { button, h } from './dom';
import { Disposables } from './disposables';
import { languageAround } from './language';
import { Selection } from './selection';
import { Theme } from './theme';
import { mountGrowing, type IGrowing } from './timeline';

/** Building a timeline may take this share of the time: a long one is built less often. */
const SHARE = 0.2;

export interface ILive {
  /** Show what arrived. */
  readonly update: () => void;
  readonly dispose: () => void;
}

/** Without `stop` there is no button. */
export function mountLive(
  el: HTMLElement,
  ops: LiveOps,
  stop: (() => void) | null,
  language: Language = languageAround(el)
): ILive {
  const view = new LiveTimeline(el, ops, stop, language);
  return { update: view.update, dispose: view.dispose };
}

class LiveTimeline {
  private _timeline: IGrowing | null = null;
  private _devices = '';
  private _timer = 0;
  private _wait = 0;
  private _inner = new Disposables();
  private readonly _disposables = new Disposables();
  readonly dispose = this._disposables.dispose;
  private readonly _root: HTMLElement;
  private readonly _summary: HTMLElement;
  private readonly _stop: HTMLButtonElement;
  private readonly _slot: HTMLElement;

  constructor(
    el: HTMLElement,
    private readonly _ops: LiveOps,
    stop: (() => void) | null,
    private readonly _language: Language
  ) {
    this._root = h(el, 'section', {
      class: 'dt-root dt-live',
      aria: { label: sentence(this._language, 'live.label') },
      data: { devtrace: 'live' }
    });
    this._summary = h(el, 'span', { class: 'dt-fact', role: 'status' });
    const title = sentence(this._language, 'live.stop-title');
    this._stop = button(el, this._disposables, sentence(this._language, 'live.stop'), () => stop?.(), { title });
    this._slot = h(el, 'div');
    const grow = h(el, 'span', { class: 'dt-grow' });
    this._root.append(
      h(el, 'header', { class: 'dt-summary' }, this._summary, grow, ...(stop ? [this._stop] : [])),
      this._slot
    );
    el.append(this._root);
    this._disposables.add(() => {
      clearTimeout(this._timer);
      this._end();
      this._root.remove();
    });
    this.update();
    this._root.dataset['ready'] = 'true';
  }

  readonly update = (): void => {
    const { _language: language } = this;
    const { progress, title, isRunning } = this._ops;
    const state = isRunning ? 'live.running' : progress.ops > 0 ? 'live.done' : 'live.waiting';
    const facts = [
      title.slice(0, 80),
      sentence(language, state),
      ...(progress.ops > 0
        ? [sentence(language, 'count.ops', { count: progress.ops }), formatTime(progress.seconds * 1e9)]
        : []),
      ...progress.counts
        .slice(0, 8)
        .map(([device, count]) => sentence(language, 'live.device', { device: device.slice(0, 40), count })),
      progress.copied > 0 ? sentence(language, 'live.copied', { size: formatBytes(progress.copied) }) : ''
    ];
    this._summary.textContent = facts.filter(fact => fact !== '').join('  ·  ');
    this._stop.disabled = !isRunning;
    this._root.dataset['opCount'] = String(progress.ops);
    if (this._timer === 0 && progress.ops > 0) {
      this._timer = window.setTimeout(this._build, this._wait);
    }
  };

  private readonly _build = (): void => {
    const begin = performance.now();
    this._timer = 0;
    const trace = { ...this._ops.trace(), language: this._language };
    const devices = Array.from({ length: trace.devices.length }, (_, id) => deviceName(trace, id)).join();
    // Colours belong to devices by id: for other devices, as the next recording may have, the timeline is made anew.
    if (this._timeline === null || devices !== this._devices) {
      this._end();
      this._devices = devices;
      this._inner = new Disposables();
      const theme = new Theme(this._root, trace, this._inner);
      this._timeline = mountGrowing(this._slot, trace, new Selection(trace), theme);
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
}
