/**
 * The findings, worst first as Python ordered them, each with its message, its story and its fix.
 */
import { editLabel, firstLine, moreLabel, opOrRule } from '../layout/finding-text';
import { formatCount } from '../layout/units';
import type { IEdit, IFinding } from '../model/findings';
import type { ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { severityLook } from '../paint/palette';
import { button, h } from './dom';
import { namedChip, siteLink, withCode, type IViewContext } from './chips';
import { changePreview } from './change';
import { fixButtons, showFix } from './finding-fix';
import { listenToRows } from './rows';
import { Disposables } from './disposables';
import type { Selection } from './selection';

/** More errors and warnings are shown when asked for; notes, which ask for nothing, only then. */
const FIRST = 30;
/** Lines of one story, edits of one fix, devices of one finding. */
const MOST_STEPS = 24;

/** `notes`: whether notes are shown before they are asked for. */
export function mountFindings(el: HTMLElement, trace: ITrace, selection: Selection, notes = false): () => void {
  const disposables = new Disposables();
  const findings = trace.findings ?? [];
  const root = h(el, 'div', { class: 'dt-findings', data: { devtrace: 'findings' } });
  const { language } = trace;
  const grid = h(el, 'div', { role: 'grid', aria: { label: sentence(language, 'findings.label') } });
  const context = { owner: grid, trace, selection, disposables };
  const rows: HTMLElement[] = [];
  const add = (end: number): void => {
    for (let i = rows.length; i < Math.min(end, findings.length); i++) {
      rows.push(findingRow(context, findings[i], i));
      showFix(context, rows[i], findings[i], i);
      grid.append(rows[i]);
    }
    grid.hidden = rows.length === 0;
  };
  const first = Math.min(FIRST, findings.filter(finding => notes || finding.severity !== 'note').length);
  add(first);
  root.append(grid);
  if (first === 0) {
    root.append(nothing(root, trace));
  }
  if (findings.length > first) {
    const act = (): void => {
      add(Infinity);
      more.remove();
    };
    const more = button(root, disposables, moreLabel(language, findings.slice(first)), act, { class: 'dt-more' });
    root.append(more);
  }
  listenToRows(grid, rows, at => selection.pickFinding(at), disposables);
  const select = (): void => {
    const { finding } = selection.picked;
    add(finding + 1);
    rows.forEach((row, i) => mark(row, i === finding, i === Math.max(finding, 0)));
  };
  selection.changed.add(disposables, select);
  select();
  const { repairs } = selection.host;
  if (repairs) {
    disposables.add(repairs.subscribe(() => rows.forEach((row, i) => showFix(context, row, findings[i], i))));
  }
  el.append(root);
  root.dataset['ready'] = 'true';
  disposables.remove(root);
  return disposables.dispose;
}

function nothing(owner: Node, trace: ITrace): HTMLElement {
  const key = trace.allClear ? 'findings.clean' : 'findings.none';
  const text = sentence(trace.language, trace.findings === null ? 'findings.undiagnosed' : key);
  return h(owner, 'p', { class: 'dt-none', text: trace.closing || text });
}

function mark(row: HTMLElement, selected: boolean, open: boolean): void {
  row.setAttribute('aria-selected', String(selected));
  row.classList.toggle('dt-open', open);
  row.tabIndex = open ? 0 : -1;
}

function findingRow(context: IViewContext, finding: IFinding, index: number): HTMLElement {
  const { owner, selection, disposables } = context;
  const cell = h(
    owner,
    'div',
    { role: 'gridcell' },
    message(context, finding),
    head(context, finding),
    ...fixInOneLine(context, finding),
    ...(selection.host.repairs ? [h(owner, 'p', { class: 'dt-repair', role: 'status' })] : []),
    details(context, finding, index)
  );
  const row = h(
    owner,
    'div',
    {
      class: 'dt-finding',
      role: 'row',
      data: { devtrace: 'finding', rule: finding.rule.slice(0, 200), severity: finding.severity, ready: 'true' },
      style: { '--dt-severity': `var(--dt-${finding.severity})` }
    },
    cell
  );
  disposables.listen(row, 'click', event => {
    if (!(event.target as HTMLElement).closest('button')) {
      selection.pickFinding(index);
    }
  });
  return row;
}

/** In sight while the story is folded: a reader of many findings sees which of them can be fixed by a click. */
function fixInOneLine({ owner }: IViewContext, { help }: IFinding): HTMLElement[] {
  return help === '' ? [] : [h(owner, 'p', { class: 'dt-fix-line' })];
}

const SEVERITIES = { error: 'severity.error', warning: 'severity.warning', note: 'severity.note' } as const;

/** `✗ model.out_head.weight is on cpu …`: what a reader would paste into a chat comes first. */
function message({ owner, trace }: IViewContext, { severity, message: text }: IFinding): HTMLElement {
  return h(
    owner,
    'p',
    { class: 'dt-message' },
    h(owner, 'span', { class: 'dt-sign', text: severityLook(severity, false).sign, aria: { hidden: 'true' } }),
    h(owner, 'span', { class: 'dt-hidden', text: sentence(trace.language, SEVERITIES[severity]) }),
    h(owner, 'span', {}, ...withCode(owner, text))
  );
}

/** `In[7] line 6  self.out_head(x)   aten.addmm   cuda:0 + cpu` */
function head(context: IViewContext, finding: IFinding): HTMLElement {
  const { owner, trace } = context;
  const { site, devices, count } = finding;
  const text = site < 0 ? '' : trace.strings[trace.sites.text[site]];
  const parts: Array<Node | string> = [];
  if (site >= 0) {
    parts.push(siteLink(context, site));
  }
  parts.push(h(owner, 'code', { class: 'dt-code', text: firstLine(text) }), h(owner, 'span', { class: 'dt-grow' }));
  if (count > 1) {
    parts.push(h(owner, 'span', { class: 'dt-count', text: `${formatCount(count)}×` }));
  }
  parts.push(h(owner, 'span', { class: 'dt-op', text: opOrRule(trace, finding) }));
  parts.push(
    h(
      owner,
      'span',
      { class: 'dt-devices' },
      ...devices.slice(0, MOST_STEPS).map(name => namedChip(owner, trace, name))
    )
  );
  return h(owner, 'div', { class: 'dt-head' }, ...parts);
}

/** The story of a finding: where its tensor was created, which move missed it, and the fix. */
function details(context: IViewContext, finding: IFinding, index: number): HTMLElement {
  const { owner, trace } = context;
  const list = h(owner, 'dl', { class: 'dt-story' });
  const add = (term: string, ...parts: Array<Node | string>): void => {
    list.append(h(owner, 'dt', { text: term }), h(owner, 'dd', {}, ...parts));
  };
  for (const { label, site, remark } of finding.lines.slice(0, MOST_STEPS)) {
    const code = site < 0 ? '' : firstLine(trace.strings[trace.sites.text[site]]);
    const beside = remark === '' ? [] : [' ', h(owner, 'span', { class: 'dt-remark' }, ...withCode(owner, remark))];
    const link = site < 0 ? [] : [siteLink(context, site), ' '];
    add(label, ...link, h(owner, 'code', { text: code }), ...beside);
  }
  if (finding.help !== '') {
    const help = h(owner, 'span', { class: 'dt-help' }, ...withCode(owner, finding.help));
    const trial = h(owner, 'div', { class: 'dt-trial' });
    add(sentence(trace.language, 'label.fix'), help, fixButtons(context, finding, index), trial);
  }
  const grade = finding.edits.at(0)?.grade;
  if (finding.proof && grade && grade !== 'not tried') {
    const label = grade === 'proven' ? 'label.proven' : 'label.tried';
    add(sentence(trace.language, label), h(owner, 'span', { text: finding.proof }));
  }
  for (const edit of finding.edits.slice(0, MOST_STEPS)) {
    const place = h(owner, 'span', { text: editLabel(trace.language, edit) });
    const preview = changePreview(owner, place, edit, ...notTried(context, edit));
    add(sentence(trace.language, 'label.edit'), preview);
  }
  return list;
}

function notTried({ owner, trace: { language } }: IViewContext, { grade }: IEdit): HTMLElement[] {
  const words = { text: sentence(language, 'edit.not-tried'), title: sentence(language, 'edit.not-tried-title') };
  return grade === 'not tried' ? [h(owner, 'span', { class: 'dt-tag dt-untried', ...words })] : [];
}
