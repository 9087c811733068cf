/**
 * The card that follows the pointer over the timeline.
 */
import { fact, opFacts, timeOfOps, type IFact } from '../layout/describe';
import type { IPoint } from '../layout/point';
import { formatTime } from '../layout/units';
import { modulePath, opName, type ITrace } from '../model/trace';
import { h } from './dom';

/** The card keeps this far (px) from the pointer. */
const AWAY = 14;

export class Card {
  readonly node: HTMLElement;
  private _shown = '';

  constructor(
    private _trace: ITrace,
    private readonly _within: HTMLElement
  ) {
    this.node = h(_within, 'div', { class: 'dt-card', aria: { hidden: 'true' } });
    this.node.hidden = true;
  }

  showOp(op: number, point: IPoint): void {
    this._show(point, `op ${op}`, opName(this._trace, op), () => opFacts(this._trace, op));
  }

  showCall(call: number, point: IPoint): void {
    const { module, begin, end } = this._trace.calls;
    const type = this._trace.strings[this._trace.modules.type[module[call]]] ?? '';
    const time = timeOfOps(this._trace, begin[call], end[call]);
    const facts = (): IFact[] => [
      fact(this._trace, 'fact.type', type),
      fact(this._trace, 'fact.ops', String(end[call] - begin[call])),
      fact(this._trace, 'fact.took', end[call] > begin[call] ? formatTime(time) : '–')
    ];
    this._show(point, `call ${call}`, modulePath(this._trace, module[call]), facts);
  }

  /** Go on with a longer trace of the same ops. */
  grow(trace: ITrace): void {
    this._trace = trace;
  }

  hide(): void {
    this.node.hidden = true;
    this._shown = '';
  }

  private _show(point: IPoint, key: string, title: string, facts: () => IFact[]): void {
    if (key !== this._shown) {
      this._shown = key;
      this.node.replaceChildren(
        h(this.node, 'div', { class: 'dt-card-title', text: title.slice(0, 200) }),
        ...facts().map(fact => factRow(this.node, fact))
      );
    }
    this.node.hidden = false;
    this._moveTo(point);
  }

  /** Beside the pointer, on the side that has room. */
  private _moveTo({ x, y }: IPoint): void {
    const { clientWidth, clientHeight } = this._within;
    const { offsetWidth, offsetHeight } = this.node;
    const left = x + AWAY + offsetWidth > clientWidth ? x - AWAY - offsetWidth : x + AWAY;
    const top = y + AWAY + offsetHeight > clientHeight ? y - AWAY - offsetHeight : y + AWAY;
    this.node.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(top, -y)}px)`;
  }
}

function factRow(owner: Node, { label, text, device }: IFact): HTMLElement {
  const value = h(owner, 'span', { class: 'dt-card-value', text: text.slice(0, 300) });
  if (device >= 0) {
    value.prepend(h(owner, 'i', { class: 'dt-swatch', style: { '--dt-fill': `var(--dt-device-${device})` } }));
  }
  return h(owner, 'div', { class: 'dt-card-fact' }, h(owner, 'span', { class: 'dt-card-label', text: label }), value);
}
