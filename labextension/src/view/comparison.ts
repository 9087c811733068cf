/**
 * The changes since another trace, above the report of the later one. Each is a row; a click picks what it is about.
 */
import type { IChange, IComparison } from '../model/comparison';
import type { IPicked } from '../model/picks';
import type { ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { h } from './dom';
import { namedChip, type IViewContext } from './chips';
import { listenToRows } from './rows';
import { Disposables } from './disposables';
import type { Selection } from './selection';

const COLUMNS = ['diff.how', 'diff.what', 'diff.where', 'diff.before', 'diff.after'] as const;
/** The signs in words, for a screen reader. */
const SIGNS = new Map([
  ['+', 'diff.new'],
  ['-', 'diff.gone'],
  ['~', 'diff.changed']
] as const);

export function mountComparison(el: HTMLElement, trace: ITrace, selection: Selection): () => void {
  const disposables = new Disposables();
  const { comparison } = trace;
  if (comparison) {
    const root = h(
      el,
      'section',
      {
        class: 'dt-diff',
        aria: { label: sentence(trace.language, 'diff.label') },
        data: { devtrace: 'diff', ready: 'true' }
      },
      head(el, comparison),
      ...(comparison.changes.length > 0 ? [table({ owner: el, trace, selection, disposables }, comparison)] : [])
    );
    el.append(root);
    disposables.remove(root);
  }
  return disposables.dispose;
}

/** `In[3] → In[4]: 5 changes   ops 120 → 124` */
function head(owner: Node, { headline, totals, worse }: IComparison): HTMLElement {
  const sign = h(owner, 'span', { class: 'dt-sign', text: worse ? '✗' : '✓', aria: { hidden: 'true' } });
  return h(
    owner,
    'p',
    { class: `dt-diff-head ${worse ? 'dt-worse' : ''}`.trim() },
    sign,
    h(owner, 'strong', { text: headline }),
    ...totals.map(text => h(owner, 'span', { class: 'dt-fact', text: text.trim() }))
  );
}

function table(context: IViewContext, { changes, more }: IComparison): HTMLElement {
  const { owner, trace, selection, disposables } = context;
  const rows = changes.map(change => changeRow(owner, trace, change));
  const { language } = trace;
  const names = COLUMNS.map((key, i) => {
    const text = sentence(language, key);
    return h(owner, 'span', { role: 'columnheader' }, h(owner, 'span', { class: i === 0 ? 'dt-hidden' : '', text }));
  });
  const top = h(owner, 'div', { class: 'dt-change dt-change-names', role: 'row' }, ...names);
  const grid = h(
    owner,
    'div',
    { class: 'dt-changes', role: 'grid', aria: { label: sentence(language, 'diff.changes') } },
    top,
    ...rows
  );
  const choose = (at: number): void => {
    pick(selection, changes[at]);
  };
  rows.forEach((row, at) => disposables.listen(row, 'click', () => choose(at)));
  listenToRows(grid, rows, choose, disposables);
  const mark = (picked: IPicked): void => {
    const found = changes.findIndex(change => isPicked(change, picked));
    rows.forEach((row, at) => {
      row.setAttribute('aria-selected', String(at === found));
      row.tabIndex = at === Math.max(found, 0) ? 0 : -1;
    });
  };
  disposables.add(selection.subscribe(mark));
  mark(selection.picked);
  if (more > 0) {
    grid.append(h(owner, 'p', { class: 'dt-none', text: sentence(language, 'more.items', { count: more }) }));
  }
  return grid;
}

function changeRow(owner: Node, trace: ITrace, change: IChange): HTMLElement {
  const { sign, what, where, before, after, worse } = change;
  const cell = (name: string, ...children: Array<Node | string>): HTMLElement =>
    h(owner, 'span', { class: `dt-change-${name}`, role: 'gridcell' }, ...children);
  const hidden = h(owner, 'span', { class: 'dt-hidden', text: signWord(trace.language, sign) });
  return h(
    owner,
    'div',
    {
      class: `dt-change ${worse ? 'dt-worse' : ''} ${isHere(change) ? 'dt-here' : ''}`.trim(),
      role: 'row',
      data: { what: what.slice(0, 40) }
    },
    cell('sign', h(owner, 'span', { class: 'dt-sign', text: sign.slice(0, 1), aria: { hidden: 'true' } }), hidden),
    cell('what', h(owner, 'span', { text: what })),
    cell('where', h(owner, 'code', { text: where })),
    cell('before', ...values(owner, trace, what, before)),
    cell('after', ...values(owner, trace, what, after))
  );
}

function signWord(language: Language, sign: string): string {
  const key = [...SIGNS].find(([each]) => each === sign)?.[1];
  return key === undefined ? '' : sentence(language, key);
}

/** Devices look as they do everywhere. */
function values(owner: Node, trace: ITrace, what: string, text: string): Node[] {
  if (text === '') {
    return [];
  }
  const isDevices = text.length < 200 && (what === 'device' || what === 'compute');
  return isDevices
    ? text.split(' + ').map(name => namedChip(owner, trace, name))
    : [h(owner, 'span', { class: 'dt-value', text })];
}

/** True if the later trace has a row that the change is about. */
function isHere({ finding, site, module }: IChange): boolean {
  return finding >= 0 || site >= 0 || module >= 0;
}

function pick(selection: Selection, { finding, site, module }: IChange): void {
  if (finding >= 0) {
    selection.pickFinding(finding);
  } else if (module >= 0) {
    selection.pickModule(module);
  } else if (site >= 0) {
    selection.pickSite(site);
  }
}

function isPicked({ finding, site, module }: IChange, picked: IPicked): boolean {
  if (finding >= 0 || picked.finding >= 0) {
    return finding >= 0 && finding === picked.finding;
  }
  return module >= 0 ? module === picked.module : site >= 0 && site === picked.site;
}
