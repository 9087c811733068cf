/**
 * Tabs: a view is mounted when its tab is first chosen, and stays.
 */
import { sentence, type Language } from '../model/words/catalogue';
import { h } from './dom';
import { Disposables } from './disposables';
import { steppedTo } from './rows';

const TAB_KEYS = { ArrowRight: 1, ArrowLeft: -1 };

interface ITab {
  readonly name: 'tab.timeline' | 'tab.memory' | 'tab.modules' | 'tab.lines' | 'tab.ops';
  readonly mount: (panel: HTMLElement) => () => void;
}

/** `id` is a prefix for the ids of the elements. */
interface ITabLook {
  readonly id: string;
  readonly language: Language;
}

export function mountTabs(el: HTMLElement, { id, language }: ITabLook, tabs: readonly ITab[]): () => void {
  const disposables = new Disposables();
  const bar = h(el, 'div', { class: 'dt-tabs', role: 'tablist', aria: { label: sentence(language, 'report.views') } });
  const heads = tabs.map(({ name }, i) => tabHead(el, id, sentence(language, name), i));
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
      disposables.add(tabs[at].mount(panels[at]));
    }
  };
  heads.forEach((head, i) => {
    disposables.listen(head, 'click', () => {
      choose(i);
    });
  });
  disposables.listen(bar, 'keydown', event => {
    const at = heads.indexOf(event.target as HTMLButtonElement);
    const next = at < 0 ? null : steppedTo(event.key, at, heads.length, TAB_KEYS);
    if (next !== null) {
      event.preventDefault();
      event.stopPropagation();
      const round = (next + heads.length) % heads.length;
      choose(round);
      heads[round].focus();
    }
  });
  bar.append(...heads);
  el.append(bar, ...panels);
  choose(0);
  disposables.add(() => {
    [bar, ...panels].forEach(part => {
      part.remove();
    });
  });
  return disposables.dispose;
}

function tabHead(owner: Node, id: string, name: string, at: number): HTMLButtonElement {
  return h(owner, 'button', {
    class: 'dt-tab',
    role: 'tab',
    text: name,
    attributes: { type: 'button', id: `${id}-tab-${at}` },
    aria: { controls: `${id}-panel-${at}` }
  });
}

function tabPanel(owner: Node, id: string, at: number): HTMLElement {
  return h(owner, 'div', {
    class: 'dt-panel',
    role: 'tabpanel',
    attributes: { id: `${id}-panel-${at}` },
    aria: { labelledby: `${id}-tab-${at}` }
  });
}
