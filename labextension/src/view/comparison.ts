/**
 * The changes since another trace, above the report of the later one. Each is a row, whose place picks what it is about.
 */
import type { IChange, IComparison } from '../model/comparison';
import type { ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { button, h } from './dom';
import { namedChip, type IViewContext } from './chips';
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
    const rest = sentence(trace.language, 'more.items', { count: comparison.more });
    const root = h(
      el,
      'section',
      {
        class: 'dt-diff',
        aria: { label: sentence(trace.language, 'diff.label') },
        data: { devtrace: 'diff', ready: 'true' }
      },
      head(el, comparison),
      ...(comparison.changes.length > 0 ? [table({ owner: el, trace, selection, disposables }, comparison)] : []),
      ...(comparison.more > 0 ? [h(el, 'p', { class: 'dt-none', text: rest })] : [])
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

function table(context: IViewContext, { changes }: IComparison): HTMLElement {
  const { owner, trace } = context;
  const { language } = trace;
  const names = COLUMNS.map((key, i) => {
    const text = sentence(language, key);
    return h(owner, 'span', { role: 'columnheader' }, h(owner, 'span', { class: i === 0 ? 'dt-hidden' : '', text }));
  });
  return h(
    owner,
    'div',
    { class: 'dt-changes', role: 'table', aria: { label: sentence(language, 'diff.changes') } },
    h(owner, 'div', { class: 'dt-change dt-change-names', role: 'row' }, ...names),
    ...changes.map(change => changeRow(context, change))
  );
}

function changeRow(context: IViewContext, change: IChange): HTMLElement {
  const { owner, trace } = context;
  const { sign, what, where, before, after, worse } = change;
  const cell = (name: string, ...children: Array<Node | string>): HTMLElement =>
    h(owner, 'span', { class: `dt-change-${name}`, role: 'cell' }, ...children);
  const hidden = h(owner, 'span', { class: 'dt-hidden', text: signWord(trace.language, sign) });
  return h(
    owner,
    'div',
    { class: `dt-change ${worse ? 'dt-worse' : ''}`.trim(), role: 'row', data: { what: what.slice(0, 40) } },
    cell('sign', h(owner, 'span', { class: 'dt-sign', text: sign.slice(0, 1), aria: { hidden: 'true' } }), hidden),
    cell('what', h(owner, 'span', { text: what })),
    cell('where', whereIn(context, change, where)),
    cell('before', ...values(owner, trace, what, before)),
    cell('after', ...values(owner, trace, what, after))
  );
}

/** Where a change is; it can be picked where the later trace has it. */
function whereIn({ owner, selection, disposables }: IViewContext, change: IChange, where: string): HTMLElement {
  const { finding, site, module } = change;
  const code = h(owner, 'code', { text: where });
  if (finding < 0 && site < 0 && module < 0) {
    return code;
  }
  const link = button(owner, '', { class: 'dt-link' });
  link.append(code);
  disposables.listen(link, 'click', () => {
    if (finding >= 0) {
      selection.pickFinding(finding);
    } else if (module >= 0) {
      selection.pickModule(module);
    } else {
      selection.pickSite(site);
    }
  });
  return link;
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
