/**
 * A part of the sidebar that is drawn again when what it shows has changed, and only then. What is focused and what is open stays so.
 */
import { h } from '../dom';
import { Disposables } from '../disposables';

export type Draw<T> = (shown: T, body: HTMLElement, scope: Disposables) => void;

export interface ISection<T> {
  readonly node: HTMLElement;
  update(shown: T): void;
  /** Draw again although nothing changed: the theme did. */
  redraw(): void;
  dispose(): void;
}

/** A part without a heading. */
export function part<T>(owner: Node, name: string, draw: Draw<T>, same: (a: T, b: T) => boolean): ISection<T> {
  const node = h(owner, 'div', { class: `dt-side-part dt-side-${name}`, data: { part: name } });
  return drawn(node, node, draw, same);
}

/** A part that folds under its heading; `count` stands beside it. */
export function section<T>(
  owner: Node,
  title: string,
  draw: Draw<T>,
  same: (a: T, b: T) => boolean,
  count: (shown: T) => string
): ISection<T> {
  const badge = h(owner, 'span', { class: 'dt-side-count' });
  const name = title.toLowerCase();
  const body = h(owner, 'div', { class: 'dt-side-body' });
  const node = h(
    owner,
    'details',
    { class: `dt-side-section dt-side-${name}`, data: { part: name } },
    h(owner, 'summary', { class: 'dt-side-title' }, h(owner, 'h3', { text: title }), badge),
    body
  );
  node.open = true;
  const inner = drawn(node, body, draw, same);
  return {
    ...inner,
    update: shown => {
      badge.textContent = count(shown);
      inner.update(shown);
    }
  };
}

function drawn<T>(node: HTMLElement, body: HTMLElement, draw: Draw<T>, same: (a: T, b: T) => boolean): ISection<T> {
  let shown: { readonly value: T } | null = null;
  let scope = new Disposables();
  const redraw = (): void => {
    if (shown === null) {
      return;
    }
    const focused = focusedKey(body);
    scope.dispose();
    scope = new Disposables();
    body.replaceChildren();
    draw(shown.value, body, scope);
    restoreFocus(body, focused);
  };
  return {
    node,
    redraw,
    update: value => {
      if (shown === null || !same(shown.value, value)) {
        shown = { value };
        redraw();
      }
    },
    dispose: () => {
      scope.dispose();
      node.remove();
    }
  };
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

/** A <details> that stays open or closed when its part is drawn again. */
export function folding(
  owner: Node,
  open: Map<string, boolean>,
  key: string,
  otherwise: boolean,
  summary: Array<Node | string>,
  fill: (body: HTMLElement) => void,
  scope: Disposables
): HTMLDetailsElement {
  const body = h(owner, 'div', { class: 'dt-side-fold' });
  const node = h(owner, 'details', {}, h(owner, 'summary', { data: { key } }, ...summary), body);
  let filled = false;
  const show = (): void => {
    if (node.open && !filled) {
      filled = true;
      fill(body);
    }
  };
  node.open = open.get(key) ?? otherwise;
  show();
  scope.listen(node, 'toggle', () => {
    open.set(key, node.open);
    show();
  });
  return node;
}
