/**
 * Tabs: a view is mounted when its tab is first chosen, and stays.
 */
import { h } from './dom';
import { Scope } from './scope';

export interface ITab {
  readonly name: string;
  readonly mount: (panel: HTMLElement) => () => void;
}

let made = 0;

export function mountTabs(el: HTMLElement, tabs: readonly ITab[]): () => void {
  const scope = new Scope();
  const id = `dt-tabs-${made++}`;
  const bar = h(el, 'div', { class: 'dt-tabs', role: 'tablist', aria: { label: 'Views' } });
  const heads = tabs.map(({ name }, i) => tabHead(el, id, name, i));
  const panels = tabs.map((_, i) => tabPanel(el, id, i));
  const mounted = new Set<number>();
  const choose = (at: number): void => {
    heads.forEach((head, i) => {
      head.setAttribute('aria-selected', String(i === at));
      head.tabIndex = i === at ? 0 : -1;
      panels[i].hidden = i !== at;
    });
    if (!mounted.has(at)) {
      mounted.add(at);
      scope.add(tabs[at].mount(panels[at]));
    }
  };
  heads.forEach((head, i) => {
    scope.listen(head, 'click', () => {
      choose(i);
    });
  });
  scope.listen(bar, 'keydown', event => {
    const at = heads.indexOf(event.target as HTMLButtonElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: heads.length - 1 }[event.key];
    if (at >= 0 && to !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      const next = (to + heads.length) % heads.length;
      choose(next);
      heads[next].focus();
    }
  });
  bar.append(...heads);
  el.append(bar, ...panels);
  choose(0);
  scope.add(() => {
    [bar, ...panels].forEach(part => {
      part.remove();
    });
  });
  return scope.dispose;
}

function tabHead(owner: Node, id: string, name: string, at: number): HTMLButtonElement {
  return h(owner, 'button', {
    class: 'dt-tab',
    role: 'tab',
    text: name,
    attributes: { type: 'button', id: `${id}-${at}` },
    aria: { controls: `${id}-panel-${at}` }
  });
}

function tabPanel(owner: Node, id: string, at: number): HTMLElement {
  return h(owner, 'div', {
    class: 'dt-panel',
    role: 'tabpanel',
    attributes: { id: `${id}-panel-${at}` },
    aria: { labelledby: `${id}-${at}` }
  });
}
