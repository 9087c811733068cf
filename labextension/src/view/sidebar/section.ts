/**
 * A part of the sidebar that is drawn again when a field that it reads has changed, and only then. Focus and folds stay as they are, and
 * nothing is replaced under a press: a button that is gone before its release gets no click.
 */
import type { ISidebar } from '../../model/sidebar';
import { sentence, type Language } from '../../model/words/catalogue';
import { h } from '../dom';
import { Disposables } from '../disposables';
import type { IActions, IDrawing } from './drawing';

/** What is pressed is looked at again after this many ms. */
const PRESS = 50;

/** A count beside a title; `isFaint`: of what asks for nothing. */
export interface ICount {
  readonly text: string;
  readonly isFaint?: boolean;
}

export interface IPart {
  readonly name: string;
  readonly reads: ReadonlyArray<keyof ISidebar>;
  readonly draw: (shown: ISidebar, drawing: IDrawing) => void;
  /** A part with a title folds under it, with a count beside it. */
  readonly title?: 'panel.findings' | 'panel.fix' | 'panel.traces' | 'panel.devices';
  readonly count?: (shown: ISidebar, language: Language) => readonly ICount[];
  /** It is not shown at all. */
  readonly isEmpty?: (shown: ISidebar) => boolean;
}

export class Part {
  readonly node: HTMLElement;
  private readonly _body: HTMLElement;
  private readonly _count: HTMLElement;
  private readonly _open = new Map<string, boolean>();
  private _shown: ISidebar | null = null;
  private _drawn = new Disposables();
  private _timer = 0;

  constructor(
    owner: Node,
    private readonly _part: IPart,
    private readonly _actions: IActions,
    private readonly _language: Language
  ) {
    this._count = h(owner, 'span', { class: 'dt-side-counts' });
    this._body = _part.title === undefined ? this._plain(owner) : h(owner, 'div', { class: 'dt-side-body' });
    this.node = _part.title === undefined ? this._body : this._folding(owner, sentence(_language, _part.title));
  }

  update(shown: ISidebar): void {
    const before = this._shown;
    this._shown = shown;
    const { name, isEmpty } = this._part;
    this.node.hidden = name !== 'controls' && (shown.link === 'nowhere' || (isEmpty?.(shown) ?? false));
    if (before === null || this._part.reads.some(key => before[key] !== shown[key])) {
      this.redraw();
    }
  }

  /** Draws again although nothing changed: the theme did. */
  readonly redraw = (): void => {
    window.clearTimeout(this._timer);
    if (this._shown === null) {
      return;
    }
    if (this._body.querySelector(':active') !== null) {
      this._timer = window.setTimeout(this.redraw, PRESS);
      return;
    }
    const focused = focusedKey(this._body);
    this._drawn.dispose();
    this._drawn = new Disposables();
    this._body.replaceChildren();
    const { _body: body, _drawn: scope, _actions: actions, _language: language, _open: open } = this;
    this._part.draw(this._shown, { body, scope, actions, language, open });
    this._showCounts(this._part.count?.(this._shown, language) ?? []);
    restoreFocus(this._body, focused);
  };

  dispose(): void {
    window.clearTimeout(this._timer);
    this._drawn.dispose();
    this.node.remove();
  }

  private _showCounts(counts: readonly ICount[]): void {
    const look = (isFaint = false): string => (isFaint ? 'dt-faint' : 'dt-side-count');
    const parts = counts.map(each => h(this._count, 'span', { class: look(each.isFaint), text: each.text }));
    this._count.replaceChildren(...parts.flatMap((part, i) => (i === 0 ? [part] : [' ', part])));
  }

  private _plain(owner: Node): HTMLElement {
    const { name } = this._part;
    return h(owner, 'div', { class: `dt-side-part dt-side-${name}`, data: { part: name } });
  }

  private _folding(owner: Node, title: string): HTMLElement {
    const { name } = this._part;
    const summary = h(owner, 'summary', { class: 'dt-side-title' }, h(owner, 'h3', { text: title }), this._count);
    const look = { class: `dt-side-section dt-side-${name}`, data: { part: name } };
    const node = h(owner, 'details', look, summary, this._body);
    node.open = true;
    return node;
  }
}

/** The `data-key` of what has the focus in here. */
function focusedKey(body: HTMLElement): string | null {
  const active = body.ownerDocument.activeElement;
  return active instanceof HTMLElement && body.contains(active) ? (active.dataset['key'] ?? '') : null;
}

function restoreFocus(body: HTMLElement, key: string | null): void {
  if (key === null) {
    return;
  }
  const keyed = [...body.querySelectorAll<HTMLElement>('[data-key]')];
  const next = keyed.find(element => element.dataset['key'] === key) ?? keyed.at(0);
  (next ?? body.closest<HTMLElement>('.dt-sidebar'))?.focus({ preventScroll: true });
}

interface IFold {
  readonly key: string;
  /** Until the user opens or closes it. */
  readonly isOpen: boolean;
  readonly summary: ReadonlyArray<Node | string>;
  readonly fill: (body: HTMLElement) => void;
}

/** A <details> that stays open or closed when its part is drawn again, and is filled when it is opened first. */
export function folding({ body: owner, open, scope }: IDrawing, fold: IFold): HTMLDetailsElement {
  const body = h(owner, 'div', { class: 'dt-side-fold' });
  const node = h(owner, 'details', {}, h(owner, 'summary', { data: { key: fold.key } }, ...fold.summary), body);
  let filled = false;
  const show = (): void => {
    if (node.open && !filled) {
      filled = true;
      fold.fill(body);
    }
  };
  node.open = open.get(fold.key) ?? fold.isOpen;
  show();
  scope.listen(node, 'toggle', () => {
    open.set(fold.key, node.open);
    show();
  });
  return node;
}
