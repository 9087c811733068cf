/**
 * The modules as nested boxes: devices of their parameters and ops, repeats, data that crosses devices, failures, and what never ran.
 */
import { boxesByModule, linksOf, type ILink } from '../layout/links';
import { buildBoxes, type IBox } from '../layout/boxes';
import { crossings, type ICrossing } from '../layout/crossings';
import { layOutBoxes, type IFlow, type Lead } from '../layout/flow';
import { moduleTree, type IModuleNode } from '../layout/modules';
import { routesOf } from '../layout/routes';
import type { ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { button, h } from './dom';
import { boxElement, boxText } from './module-box';
import { arrowsElement } from './module-arrows';
import { Disposables } from './disposables';
import { steppedTo } from './rows';
import type { Selection } from './selection';

/** More boxes than this are not drawn, only counted. */
const MOST_BOXES = 1500;

export function mountModules(el: HTMLElement, trace: ITrace, selection: Selection): () => void {
  return new ModulesView(el, trace, selection).dispose;
}

class ModulesView {
  private readonly _roots: readonly IModuleNode[];
  private readonly _crossings: readonly ICrossing[];
  private readonly _opened = new Map<number, boolean>();
  private readonly _unfolded = new Set<number>();
  private readonly _disposables = new Disposables();
  readonly dispose = this._disposables.dispose;
  private readonly _root: HTMLElement;
  private readonly _tree: HTMLElement;
  private readonly _scroller: HTMLElement;
  private _elements: HTMLElement[] = [];
  private _flow: IFlow = { bounds: [], width: 0, height: 0 };
  private _byModule = new Map<number, IBox>();
  private _width = 0;

  constructor(
    el: HTMLElement,
    private readonly _trace: ITrace,
    private readonly _selection: Selection
  ) {
    this._roots = moduleTree(_trace);
    this._crossings = crossings(_trace);
    this._root = h(el, 'div', { class: 'dt-modules', data: { devtrace: 'modules' } });
    this._tree = h(el, 'div', {
      class: 'dt-tree',
      role: 'tree',
      aria: { label: sentence(_trace.language, 'tab.modules') }
    });
    this._scroller = h(el, 'div', { class: 'dt-tree-frame' }, this._tree);
    this._root.append(this._tools(), this._scroller);
    el.append(this._root);
    this._listen();
  }

  private _tools(): HTMLElement {
    const { language } = this._trace;
    const act = (name: string, title: string, run: () => void): HTMLElement =>
      button(this._root, this._disposables, name, run, { title });
    return h(
      this._root,
      'div',
      { class: 'dt-tools' },
      h(this._root, 'span', { class: 'dt-faint', text: this._caption() }),
      h(this._root, 'span', { class: 'dt-grow' }),
      act(sentence(language, 'modules.open'), sentence(language, 'modules.open-title'), () => this._openAll(true)),
      act(sentence(language, 'modules.close'), sentence(language, 'modules.close-title'), () => this._openAll(false)),
      act(sentence(language, 'modules.fold'), sentence(language, 'modules.fold-title'), () => {
        this._opened.clear();
        this._unfolded.clear();
        this._draw();
      })
    );
  }

  private _caption(): string {
    const { length, ran } = this._trace.modules;
    const idle = ran.reduce((sum, value) => sum + (value === 1 ? 0 : 1), 0);
    const { language } = this._trace;
    const modules = sentence(language, 'count.modules', { count: length });
    return idle > 0 ? sentence(language, 'modules.not-called', { modules, count: idle }) : modules;
  }

  private _openAll(open: boolean): void {
    const visit = (nodes: readonly IModuleNode[]): void => {
      for (const node of nodes) {
        this._opened.set(node.id, open);
        visit(node.children);
      }
    };
    visit(this._roots);
    this._draw();
  }

  private _listen(): void {
    this._disposables.onResize(this._scroller, () => {
      const width = this._scroller.clientWidth;
      if (width > 0 && width !== this._width) {
        this._width = width;
        this._draw();
      }
    });
    this._disposables.remove(this._root);
    this._disposables.listen(this._tree, 'click', event => {
      this._click(event);
    });
    this._disposables.listen(this._tree, 'keydown', event => {
      this._key(event);
    });
    this._selection.changed.add(this._disposables, () => this._mark());
  }

  private _draw(): void {
    const boxes = buildBoxes(this._trace, this._roots, { opened: this._opened, unfolded: this._unfolded });
    this._byModule = boxesByModule(boxes);
    const links = linksOf(this._crossings, boxes, this._byModule);
    const leads = new Map<IBox, Lead>();
    for (const { source, target } of links) {
      leads.set(target, source === null || leads.get(target) === 'outside' ? 'outside' : 'neighbour');
    }
    this._flow = layOutBoxes(
      boxes,
      this._width,
      box => boxText(this._trace, box),
      box => leads.get(box) ?? 'none'
    );
    this._show(this._flow, links);
  }

  private _show(flow: IFlow, links: readonly ILink[]): void {
    const shown = flow.bounds.slice(0, MOST_BOXES);
    this._elements = shown.map(bounds => boxElement(this._tree, this._trace, bounds, intoBox(links, bounds.box)));
    this._tree.style.height = `${flow.height}px`;
    this._tree.style.width = `${flow.width}px`;
    this._tree.replaceChildren(...this._elements);
    this._scroller.replaceChildren(this._tree, arrowsElement(this._tree, flow, routesOf(flow, links)));
    if (flow.bounds.length > MOST_BOXES) {
      const text = sentence(this._trace.language, 'modules.more', { count: flow.bounds.length - MOST_BOXES });
      this._scroller.append(h(this._root, 'p', { class: 'dt-none', text }));
    }
    this._mark();
    this._root.dataset['ready'] = 'true';
  }

  /** Mark the picked box, and keep one box in the tab order. */
  private _mark(): void {
    const { module } = this._selection.picked;
    const picked = module < 0 ? undefined : this._byModule.get(module);
    const at = this._flow.bounds.findIndex(({ box }) => box === picked);
    this._elements.forEach((element, i) => {
      element.setAttribute('aria-selected', String(i === at));
      element.tabIndex = i === Math.max(at, 0) ? 0 : -1;
    });
    const bounds = this._flow.bounds[at];
    const { scrollTop, clientHeight } = this._scroller;
    if (at >= 0 && (bounds.y < scrollTop || bounds.y + 40 > scrollTop + clientHeight)) {
      this._scroller.scrollTop = bounds.y - 40;
    }
  }

  private _click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const at = this._elements.findIndex(element => element.contains(target));
    if (at < 0) {
      return;
    }
    const { box } = this._flow.bounds[at];
    const { id } = box.nodes[0];
    if (target.closest('.dt-repeats')) {
      this._unfold(box);
    } else if (target.closest('.dt-toggle') || (event.detail > 1 && box.nodes[0].children.length > 0)) {
      this._toggle(box, !box.open);
    } else {
      this._selection.pickModule(id);
    }
  }

  private _unfold(box: IBox): void {
    for (const { id } of box.nodes) {
      this._unfolded.add(id);
    }
    this._draw();
    this._focus(box.nodes[0].id);
  }

  private _toggle(box: IBox, open: boolean): void {
    const { id, children } = box.nodes[0];
    if (children.length > 0) {
      this._opened.set(id, open);
      this._draw();
      this._focus(id);
    }
  }

  private _focus(module: number): void {
    const box = this._byModule.get(module);
    this._elements[this._flow.bounds.findIndex(each => each.box === box)]?.focus();
  }

  private _key(event: KeyboardEvent): void {
    const at = this._elements.indexOf(event.target as HTMLElement);
    const act = at < 0 ? undefined : this._actionOf(at, event.key);
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  }

  private _actionOf(at: number, key: string): (() => void) | undefined {
    const { box, parent } = this._flow.bounds[at];
    const to = steppedTo(key, at, this._elements.length);
    if (to !== null) {
      return () => this._go(to);
    }
    switch (key) {
      case 'ArrowRight':
        return () => (box.open ? this._go(at + 1) : this._toggle(box, true));
      case 'ArrowLeft':
        return () => (box.open ? this._toggle(box, false) : this._go(parent));
      case 'Enter':
      case ' ':
        return () => this._selection.pickModule(box.nodes[0].id);
      case '*':
        return () => this._unfold(box);
      default:
        return undefined;
    }
  }

  private _go(to: number): void {
    this._elements[Math.min(Math.max(to, 0), this._elements.length - 1)].focus();
  }
}

function intoBox(links: readonly ILink[], box: IBox): readonly ILink[] {
  return links.filter(link => link.target === box);
}
