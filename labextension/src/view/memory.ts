/**
 * The memory of each device over the trace: what it is for stacked up, the limit and the peak; a press on a kind shows its names.
 */
import {
  AREA,
  ceilingOf,
  formatMemory,
  highestOf,
  layersOf,
  letterSpot,
  outlineOf,
  leftsOf,
  pointAt,
  totalOf,
  type ILayer
} from '../layout/memory';
import { readMemory, type ICurve, type MemoryKind } from '../model/memory';
import { userSite, type ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { memoryLook } from '../paint/memory';
import { namedChip, siteLink } from './chips';
import { Disposables } from './disposables';
import { button, h } from './dom';
import { steppedTo } from './rows';
import type { Selection } from './selection';
import { svgElement } from './svg';
import type { Theme } from './theme';

const KINDS = {
  parameter: 'memory.parameter',
  buffer: 'memory.buffer',
  'optimizer-state': 'memory.optimizer-state',
  gradient: 'memory.gradient',
  named: 'memory.named',
  activation: 'memory.activation',
  temporary: 'memory.temporary'
} as const;
const POINT_KEYS = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 };

export function mountMemory(el: HTMLElement, trace: ITrace, selection: Selection, theme: Theme): () => void {
  const disposables = new Disposables();
  const root = h(el, 'div', { class: 'dt-memory', data: { devtrace: 'memory' } });
  el.append(root);
  disposables.remove(root);
  const show = async (): Promise<void> => {
    try {
      const curves = await readMemory(trace.memory);
      if (!disposables.isDisposed) {
        curves.forEach(curve => new CurveView({ root, trace, selection, theme, disposables }, curve));
      }
    } catch (error) {
      root.append(h(root, 'p', { class: 'dt-none', text: String(error) }));
    }
    root.dataset['ready'] = 'true';
  };
  void show();
  return disposables.dispose;
}

interface IAround {
  readonly root: HTMLElement;
  readonly trace: ITrace;
  readonly selection: Selection;
  readonly theme: Theme;
  readonly disposables: Disposables;
}

/** The picture of one device, with its legend: sizes are those of the point that is looked at, at first the peak. */
class CurveView {
  private readonly _total: Float64Array;
  private readonly _lefts: Float64Array;
  private readonly _peak: number;
  private readonly _plot: HTMLElement;
  private readonly _legend: HTMLElement;
  private readonly _status: HTMLElement;
  private _opened: MemoryKind | null = null;
  private _layers: readonly ILayer[] = [];
  private _at: number;

  constructor(
    private readonly _around: IAround,
    private readonly _curve: ICurve
  ) {
    const { root, trace, selection, theme, disposables } = _around;
    this._total = totalOf(_curve);
    this._lefts = leftsOf(_curve, trace.ops.length);
    this._peak = this._at = highestOf(this._total);
    const label = `${_curve.device}, ${this._words()}`;
    this._plot = h(root, 'div', {
      class: 'dt-memory-plot',
      role: 'slider',
      aria: { label, valuemin: '0', valuemax: String(this._lefts.length - 1) },
      attributes: { tabindex: '0' }
    });
    this._status = h(root, 'p', { class: 'dt-faint' });
    this._legend = h(root, 'div', { class: 'dt-tools' });
    root.append(this._head(), this._plot, this._status, this._legend);
    this._listen();
    disposables.add(theme.subscribe(() => this._draw()));
    disposables.add(selection.subscribe(() => this._look(this._picked ?? this._at)));
    this._draw();
  }

  /** `at most 44.5 MiB of 64.0 MiB` */
  private _words(): string {
    const { limit, exact } = this._curve;
    const { language } = this._around.trace;
    const size = formatMemory(this._total[this._peak]);
    if (limit > 0) {
      return sentence(language, 'memory.peak-of', { size, limit: formatMemory(limit) });
    }
    return sentence(language, exact ? 'memory.peak' : 'memory.at-least', { size });
  }

  private _head(): HTMLElement {
    const { root, trace, selection, disposables } = this._around;
    const op = this._curve.ops[this._peak];
    const peak = button(root, this._words(), { title: sentence(trace.language, 'memory.go') });
    disposables.listen(peak, 'click', () => this._pick(this._peak));
    const site = userSite(trace, trace.ops.site[op] ?? -1);
    const link = site < 0 ? [] : [siteLink({ owner: root, trace, selection, disposables }, site)];
    return h(root, 'div', { class: 'dt-tools' }, namedChip(root, trace, this._curve.device), peak, ...link);
  }

  private _listen(): void {
    const { disposables } = this._around;
    const pointOf = (event: MouseEvent): number => {
      const { left, width } = this._plot.getBoundingClientRect();
      return pointAt(this._lefts, (AREA.width * (event.clientX - left)) / Math.max(width, 1));
    };
    disposables.listen(this._plot, 'pointermove', event => this._look(pointOf(event)));
    disposables.listen(this._plot, 'pointerleave', () => this._look(this._picked ?? this._peak));
    disposables.listen(this._plot, 'click', event => this._pick(pointOf(event)));
    disposables.listen(this._plot, 'keydown', event => {
      const to = steppedTo(event.key, this._at, this._lefts.length, POINT_KEYS);
      if (to !== null || event.key === 'Enter') {
        event.preventDefault();
        event.stopPropagation();
        this._pick(Math.min(Math.max(to ?? this._at, 0), this._lefts.length - 1));
      }
    });
  }

  /** The point of the op that is picked in any view. */
  private get _picked(): number | null {
    const { op } = this._around.selection.picked;
    return op < 0
      ? null
      : Math.max(
          0,
          this._curve.ops.findLastIndex(each => each <= op)
        );
  }

  private _pick(point: number): void {
    this._look(point);
    const op = this._curve.ops[point];
    if (op >= 0 && op < this._around.trace.ops.length) {
      this._around.selection.pickOp(op);
    }
  }

  private _draw(): void {
    const { root, theme } = this._around;
    this._layers = layersOf(this._curve, this._opened);
    const ceiling = ceilingOf(this._curve, this._layers, this._opened === null);
    const shown = this._layers.flatMap((layer, i) => {
      const { fill, ink, letter } = memoryLook(layer.kind, theme.appearance);
      const opacity = this._opened === null ? '1' : String(1 - 0.55 * (i / this._layers.length));
      const d = outlineOf(layer, this._lefts, ceiling);
      const area = svgElement(root, 'path', { d, fill, 'fill-opacity': opacity, 'data-kind': layer.kind });
      return [{ area, mark: this._mark(layer, ceiling, { ink, letter }) }];
    });
    const { limit } = this._curve;
    const lines = this._opened === null && limit > 0 && limit <= ceiling ? [this._limit(ceiling)] : [];
    const size = { viewBox: `0 0 ${AREA.width} ${AREA.height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
    const areas = svgElement(root, 'svg', { ...size, width: '100%', height: String(AREA.height) });
    areas.append(...shown.map(({ area }) => area));
    const peak = h(root, 'i', { class: 'dt-memory-peak', text: '▼', aria: { hidden: 'true' } });
    position(peak, this._lefts[this._peak], 1 - this._total[this._peak] / ceiling);
    const cursor = h(root, 'i', { class: 'dt-memory-cursor' });
    const marks = shown.flatMap(({ mark }) => (mark === null ? [] : [mark]));
    this._plot.replaceChildren(areas, ...marks, ...lines, ...(this._opened === null ? [peak] : []), cursor);
    this._look(this._at);
  }

  private _mark(layer: ILayer, ceiling: number, look: { ink: string; letter: string }): HTMLElement | null {
    const at = letterSpot(layer, this._lefts, ceiling, this._peak);
    if (at === null) {
      return null;
    }
    const isLetter = this._opened === null;
    const mark = h(this._around.root, 'i', {
      class: isLetter ? 'dt-memory-mark dt-memory-letter' : 'dt-memory-mark',
      text: isLetter ? look.letter : nameOf(this._around.trace, layer),
      style: { color: look.ink },
      aria: { hidden: 'true' }
    });
    const x = isLetter ? at.x : Math.min(this._lefts[at.point], 0.8 * AREA.width);
    position(mark, x, 1 - (layer.below[at.point] + layer.bytes[at.point] / 2) / ceiling);
    return mark;
  }

  private _limit(ceiling: number): HTMLElement {
    const { root, trace } = this._around;
    const text = sentence(trace.language, 'memory.limit', { size: formatMemory(this._curve.limit) });
    const line = h(root, 'i', { class: 'dt-memory-limit', text });
    position(line, 0, 1 - this._curve.limit / ceiling);
    return line;
  }

  /** Show the sizes at a point. */
  private _look(point: number): void {
    this._at = point;
    const { root, trace } = this._around;
    const cursor = this._plot.querySelector<HTMLElement>('.dt-memory-cursor');
    cursor?.style.setProperty('left', `${(100 * this._lefts[point]) / AREA.width}%`);
    const op = Math.max(this._curve.ops[point], 0);
    const text = sentence(trace.language, 'memory.at', { op: op + 1, size: formatMemory(this._total[point]) });
    this._status.textContent = text;
    this._plot.setAttribute('aria-valuenow', String(point));
    this._plot.setAttribute('aria-valuetext', text);
    if (this._legend.childElementCount === this._layers.length + (this._opened === null ? 0 : 1)) {
      this._layers.forEach((layer, i) => {
        const size = this._legend.querySelectorAll('.dt-memory-size')[this._layers.length - 1 - i];
        size.textContent = formatMemory(layer.bytes[point]);
      });
    } else {
      this._legend.replaceChildren(...this._entries(root));
      this._look(point);
    }
  }

  private _entries(root: HTMLElement): HTMLElement[] {
    const { trace, theme } = this._around;
    const entries = this._layers.map((layer, i) => {
      const { fill, ink, letter } = memoryLook(layer.kind, theme.appearance);
      const style = { '--dt-fill': fill, '--dt-ink': ink };
      const text = this._opened === null ? sentence(trace.language, KINDS[layer.kind]) : nameOf(trace, layer);
      const opacity = this._opened === null ? '1' : String(1 - 0.55 * (i / this._layers.length));
      const parts = [
        h(root, 'i', { class: 'dt-swatch', text: letter, style: { ...style, opacity }, aria: { hidden: 'true' } }),
        ` ${text} `,
        h(root, 'span', { class: 'dt-memory-size dt-faint' })
      ];
      return this._opened === null ? this._opener(root, layer.kind, parts) : h(root, 'span', {}, ...parts);
    });
    entries.reverse();
    return this._opened === null ? entries : [this._closer(root), ...entries];
  }

  private _opener(root: HTMLElement, kind: MemoryKind, parts: Array<Node | string>): HTMLElement {
    const title = sentence(this._around.trace.language, 'memory.names');
    const opener = button(root, '', { title, data: { kind } });
    opener.replaceChildren(...parts);
    opener.addEventListener('click', () => this._open(kind));
    return opener;
  }

  private _closer(root: HTMLElement): HTMLElement {
    const closer = button(root, sentence(this._around.trace.language, 'memory.kinds'));
    closer.addEventListener('click', () => this._open(null));
    return closer;
  }

  private _open(kind: MemoryKind | null): void {
    this._opened = kind;
    this._legend.replaceChildren();
    this._draw();
    this._legend.querySelector<HTMLElement>('button')?.focus();
  }
}

function nameOf(trace: ITrace, { name }: ILayer): string {
  return name === '' ? sentence(trace.language, 'memory.others') : name;
}

/** Put an element at a distance from the left, and a share from the top. */
function position(element: HTMLElement, x: number, share: number): void {
  element.style.setProperty('left', `${(100 * x) / AREA.width}%`);
  element.style.setProperty('top', `${AREA.height * share}px`);
}
