/**
 * The source of the cell and of every file that it touched, with what each line caused in the margin and the findings underlined.
 */
import { regionsOf, type IRegion } from '../layout/regions';
import { tokenize, type IToken } from '../layout/python';
import { sourceBlocks, type ILine, type ISourceBlock } from '../layout/source';
import { countOps } from '../model/ledger';
import { sourceLabel, type ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { button, h } from './dom';
import { columnHeads, lineRow } from './line-row';
import { steppedTo } from './rows';
import { Disposables } from './disposables';
import type { Selection } from './selection';

/** Opening a gap shows this many lines more. */
const MORE = 200;

export function mountLines(el: HTMLElement, trace: ITrace, selection: Selection): () => void {
  return new LinesView(el, trace, selection).dispose;
}

class LinesView {
  private readonly _most: number;
  private readonly _rows = new Map<HTMLElement, ILine>();
  private readonly _disposables = new Disposables();
  readonly dispose = this._disposables.dispose;
  private readonly _root: HTMLElement;
  private readonly _frame: HTMLElement;

  constructor(
    el: HTMLElement,
    private readonly _trace: ITrace,
    private readonly _selection: Selection
  ) {
    const blocks = sourceBlocks(_trace);
    this._most = blocks.reduce((most, block) => Math.max(most, mostOps(block)), 1);
    this._root = h(el, 'div', { class: 'dt-lines', data: { devtrace: 'lines' } });
    this._frame = h(el, 'div', { class: 'dt-lines-frame' });
    this._root.append(this._frame);
    this._frame.append(...blocks.map(block => this._block(block)));
    if (blocks.length === 0) {
      this._frame.append(h(el, 'p', { class: 'dt-none', text: sentence(_trace.language, 'lines.none') }));
    }
    el.append(this._root);
    this._disposables.remove(this._root);
    _selection.changed.add(this._disposables, () => this._mark(true));
    this._mark(true);
    if (_selection.picked.site < 0) {
      this._showFirstError();
    }
    this._root.dataset['ready'] = 'true';
  }

  private _block(block: ISourceBlock): HTMLElement {
    const { language } = this._trace;
    const label = sourceLabel(block.cell, block.file);
    const grid = h(this._root, 'div', {
      class: 'dt-source',
      role: 'grid',
      aria: { label: sentence(language, 'lines.label', { source: label }).slice(0, 200) }
    });
    grid.append(h(grid, 'div', { class: 'dt-line dt-line-names', role: 'row' }, ...columnHeads(grid, language)));
    const tokens = tokenize(block.lines.map(line => line.text.slice(0, 2000)));
    const touched = block.lines.flatMap((line, i) => (line.cost || line.marks.length > 0 ? [i] : []));
    for (const region of regionsOf(block.lines.length, touched)) {
      grid.append(...this._region(block, region, tokens));
    }
    this._disposables.listen(grid, 'keydown', event => {
      this._key(event);
    });
    const head = h(
      this._root,
      'div',
      { class: 'dt-source-name', title: block.file },
      h(grid, 'span', { text: label.slice(0, 200) }),
      h(grid, 'span', {
        class: 'dt-faint',
        text: block.ops > 0 ? sentence(language, 'count.ops', { count: block.ops }) : ''
      })
    );
    return h(this._root, 'section', {}, head, grid);
  }

  private _region(block: ISourceBlock, region: IRegion, tokens: readonly IToken[][]): HTMLElement[] {
    if (region.shown) {
      return block.lines.slice(region.from, region.to).map((line, i) => this._line(line, tokens[region.from + i]));
    }
    const count = region.to - region.from;
    const text = sentence(this._trace.language, 'lines.gap', { count });
    const open = (): void => {
      const to = Math.min(region.from + MORE, region.to);
      const rest = { from: to, to: region.to, shown: false };
      row.replaceWith(
        ...this._region(block, { from: region.from, to, shown: true }, tokens),
        ...(to < region.to ? this._region(block, rest, tokens) : [])
      );
      this._mark(false);
    };
    const more = button(this._root, this._disposables, text, open, { class: 'dt-gap' });
    const cell = h(this._root, 'span', { role: 'gridcell' }, more);
    const row = h(this._root, 'div', { class: 'dt-gap-row', role: 'row' }, cell);
    return [row];
  }

  private _line(line: ILine, tokens: readonly IToken[]): HTMLElement {
    const row = lineRow({ owner: this._root, trace: this._trace, most: this._most }, line, tokens);
    this._rows.set(row, line);
    this._disposables.listen(row, 'click', () => {
      this._pick(line);
    });
    return row;
  }

  private _pick(line: ILine): void {
    const mark = line.marks.at(0);
    if (mark) {
      this._selection.pickFinding(mark.finding);
    } else if (line.sites.length > 0) {
      this._selection.pickSite(line.sites[0]);
    }
  }

  /** Shows the picked site's line; the rows are one tab stop. */
  private _mark(reveal: boolean): void {
    const { site } = this._selection.picked;
    const caller = site < 0 ? -1 : this._trace.sites.caller[site];
    const isPicked = (line: ILine): boolean => site >= 0 && (line.sites.includes(site) || line.sites.includes(caller));
    let first: HTMLElement | undefined;
    for (const [row, line] of this._rows) {
      const picked = isPicked(line);
      row.setAttribute('aria-selected', String(picked));
      row.tabIndex = -1;
      first ??= picked ? row : undefined;
    }
    const stop = first ?? this._rows.keys().next().value;
    if (stop) {
      stop.tabIndex = 0;
    }
    if (reveal && first) {
      scrollInto(this._frame, first);
    }
  }

  private _showFirstError(): void {
    const failed = [...this._rows].find(([, { marks }]) => marks.some(({ kind }) => kind === 'error'));
    if (failed) {
      scrollInto(this._frame, failed[0]);
    }
  }

  private _key(event: KeyboardEvent): void {
    const rows = [...this._rows.keys()].filter(row => row.isConnected).sort(inPage);
    const at = rows.indexOf(event.target as HTMLElement);
    const to = steppedTo(event.key, at, rows.length);
    const line = at < 0 ? undefined : this._rows.get(rows[at]);
    if (at >= 0 && to !== null) {
      rows[Math.min(Math.max(to, 0), rows.length - 1)].focus();
    } else if (line && (event.key === 'Enter' || event.key === ' ')) {
      this._pick(line);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

function mostOps(block: ISourceBlock): number {
  return block.lines.reduce((most, line) => Math.max(most, countOps(line.cost)), 0);
}

function inPage(a: Node, b: Node): number {
  return a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
}

/** Scrolls the frame alone: the page stays where the user has it. */
function scrollInto(frame: HTMLElement, row: HTMLElement): void {
  const top = row.getBoundingClientRect().top - frame.getBoundingClientRect().top;
  if (top < 0 || top + row.offsetHeight > frame.clientHeight) {
    frame.scrollTop += top - frame.clientHeight / 3;
  }
}
