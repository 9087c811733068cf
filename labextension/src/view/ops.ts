/**
 * Every op as a row of a table that renders only what is in view; also the timeline's form for a screen reader.
 */
import { EVERYTHING, type IFilter } from '../layout/filter';
import { Scroll, tableRows, type ISorting, type SortKey } from '../layout/table';
import type { ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { h } from './dom';
import { opFilters } from './op-filters';
import { fillRow, newRow, OP_COLUMNS, type IOpRow } from './op-row';
import { steppedTo } from './rows';
import { Disposables } from './disposables';
import type { Selection } from './selection';

const ROW = 24;
const HEIGHT = 384;
/** The names of the columns stay in view above the rows, with the grid's borders. */
const HEAD = 30;
/** Rows kept ready above and below the view. */
const SPARE = 4;

/** `id` is a prefix for the ids of the rows. */
export function mountOps(el: HTMLElement, trace: ITrace, selection: Selection, id: string): () => void {
  return new OpsView(el, trace, selection, id).dispose;
}

class OpsView {
  private _filter: IFilter = EVERYTHING;
  private _sorting: ISorting = { key: 'id', falling: false };
  private _rows: Uint32Array = new Uint32Array();
  private _scroll = new Scroll(0, ROW, 0);
  private readonly _pool: IOpRow[] = [];
  private readonly _heads = new Map<SortKey, HTMLElement>();
  private readonly _disposables = new Disposables();
  readonly dispose = this._disposables.dispose;
  private readonly _root: HTMLElement;
  private readonly _grid: HTMLElement;
  private readonly _spacer: HTMLElement;
  private readonly _layer: HTMLElement;
  private readonly _count: HTMLElement;
  private readonly _nothing: HTMLElement;

  constructor(
    el: HTMLElement,
    private readonly _trace: ITrace,
    private readonly _selection: Selection,
    private readonly _id: string
  ) {
    this._root = h(el, 'div', { class: 'dt-ops', data: { devtrace: 'ops' } });
    this._layer = h(el, 'div', { class: 'dt-op-layer', role: 'rowgroup' });
    this._spacer = h(el, 'div', { class: 'dt-op-spacer', role: 'presentation' }, this._layer);
    this._grid = h(
      el,
      'div',
      {
        class: 'dt-op-grid',
        role: 'grid',
        aria: { label: sentence(_trace.language, 'ops.label') },
        attributes: { tabindex: '0' },
        style: { 'max-height': `${HEIGHT + HEAD}px` }
      },
      this._head(),
      this._spacer
    );
    this._count = h(el, 'span', { class: 'dt-found', role: 'status' });
    const filters = opFilters(this._root, _trace, this._disposables, filter => {
      this._filter = filter;
      this._update();
    });
    const text = sentence(_trace.language, 'ops.none');
    this._nothing = h(el, 'p', { class: 'dt-none dt-op-nothing', text });
    this._root.append(h(el, 'div', { class: 'dt-tools' }, ...filters, this._count), this._grid, this._nothing);
    el.append(this._root);
    this._listen();
    this._update();
    this._showPicked();
    this._root.dataset['ready'] = 'true';
  }

  private _head(): HTMLElement {
    const heads = OP_COLUMNS.map(({ key, name }) => {
      const sort = h(this._root, 'button', {
        class: 'dt-sort',
        text: sentence(this._trace.language, name),
        attributes: { type: 'button', tabindex: '-1' }
      });
      const head = h(this._root, 'span', { role: 'columnheader', aria: { sort: 'none' } }, sort);
      this._disposables.listen(sort, 'click', () => {
        this._sort(key);
      });
      this._heads.set(key, head);
      return head;
    });
    return h(this._root, 'div', { class: 'dt-op-row dt-op-head', role: 'row', aria: { rowindex: '1' } }, ...heads);
  }

  private _listen(): void {
    this._disposables.listen(this._grid, 'scroll', this._render, { passive: true });
    this._disposables.listen(this._layer, 'click', event => {
      const row = this._pool.findIndex(({ node }) => node.contains(event.target as Node));
      if (row >= 0) {
        this._selection.pickOp(this._pool[row].op);
      }
    });
    this._disposables.listen(this._grid, 'keydown', event => {
      this._key(event);
    });
    this._selection.changed.add(this._disposables, () => this._showPicked());
    this._disposables.remove(this._root);
  }

  private _sort(key: SortKey): void {
    const falling = this._sorting.key === key ? !this._sorting.falling : key === 'took';
    this._sorting = { key, falling };
    for (const [name, head] of this._heads) {
      head.setAttribute('aria-sort', name === key ? (falling ? 'descending' : 'ascending') : 'none');
    }
    this._update();
  }

  /** Finds the rows anew. */
  private _update(): void {
    this._rows = tableRows(this._trace, this._filter, this._sorting);
    const { length } = this._rows;
    this._scroll = new Scroll(length, ROW, Math.min(HEIGHT, length * ROW));
    this._spacer.style.height = `${this._scroll.height}px`;
    this._grid.scrollTop = 0;
    this._grid.setAttribute('aria-rowcount', String(length + 1));
    const all = this._trace.ops.length;
    this._nothing.hidden = length > 0 || all === 0;
    this._count.textContent = length === all ? '' : sentence(this._trace.language, 'ops.found', { count: length, all });
    this._render();
  }

  private readonly _render = (): void => {
    const top = this._scroll.rowAt(this._grid.scrollTop);
    const first = Math.max(0, Math.floor(top) - SPARE);
    const count = Math.min(this._rows.length - first, Math.ceil(HEIGHT / ROW) + 2 * SPARE);
    while (this._pool.length < count) {
      const row = newRow(this._layer, `${this._id}-op-${this._pool.length}`);
      this._pool.push(row);
      this._layer.append(row.node);
    }
    this._layer.style.transform = `translateY(${this._grid.scrollTop - (top - first) * ROW}px)`;
    const { op } = this._selection.picked;
    this._pool.forEach((row, i) => {
      row.node.hidden = i >= count;
      if (i < count) {
        fillRow(row, this._trace, this._rows[first + i], first + i);
        row.node.setAttribute('aria-selected', String(row.op === op));
      }
    });
    const active = this._pool.find(row => !row.node.hidden && row.op === op);
    this._grid.setAttribute('aria-activedescendant', active?.node.id ?? '');
  };

  private _showPicked(): void {
    const { op } = this._selection.picked;
    const at = op < 0 ? -1 : this._rows.indexOf(op);
    const top = this._scroll.rowAt(this._grid.scrollTop);
    const visible = this._scroll.viewHeight / ROW;
    if (at >= 0 && (at < top || at + 1 > top + visible)) {
      this._grid.scrollTop = this._scroll.scrollTopOf(at < top ? at : at + 1 - visible);
    }
    this._render();
  }

  private _key(event: KeyboardEvent): void {
    const at = this._rows.indexOf(this._selection.picked.op);
    const page = Math.floor(HEIGHT / ROW) - 1;
    const keys = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const to = steppedTo(event.key, at, this._rows.length, keys);
    if (to !== null && this._rows.length > 0) {
      event.preventDefault();
      event.stopPropagation();
      this._selection.pickOp(this._rows[Math.min(Math.max(to, 0), this._rows.length - 1)]);
    }
  }
}
