/**
 * All traces of the notebook, the newest first, and the findings of all of them.
 */
import { pluralize, formatTime } from '../../layout/units';
import type { IEdit, Severity } from '../../model/findings';
import { latest, type IEntry, type ISidebar } from '../../model/sidebar';
import { severityLook } from '../../paint/palette';
import { h } from '../dom';
import { mountFindings } from '../findings';
import { Selection } from '../selection';
import { dress, isDark } from '../theme';
import type { IDrawing } from './drawing';
import { folding } from './section';

const SEVERITIES: readonly Severity[] = ['error', 'warning', 'note'];

export function drawTraces({ entries }: ISidebar, drawing: IDrawing): void {
  const { body } = drawing;
  if (entries.length === 0) {
    body.append(
      h(
        body,
        'p',
        { class: 'dt-none' },
        'None yet. Begin a cell with ',
        h(body, 'code', { text: '%%devtrace' }),
        ', or trace every cell.'
      )
    );
    return;
  }
  const list = h(body, 'ul', { class: 'dt-side-list', aria: { label: 'Traces' } });
  const current = latest(entries);
  for (const entry of [...entries].reverse()) {
    const past = current.includes(entry) ? '' : 'dt-side-past';
    list.append(h(body, 'li', { class: past }, traceButton(entry, drawing)));
  }
  body.append(list);
}

/** `In[7] train   ✗1 !2   3,012 ops   1.2 s   12:03` */
function traceButton(entry: IEntry, { body, scope, actions }: IDrawing): HTMLElement {
  const { label, ops, seconds, outline, key } = entry;
  const node = h(
    body,
    'button',
    {
      class: 'dt-side-row dt-side-trace',
      title: `Show the trace of ${label} in a tab`,
      data: { key: `trace-${key}`, trace: key },
      attributes: { type: 'button' }
    },
    h(body, 'strong', { class: 'dt-side-label', text: label }),
    h(body, 'span', { class: 'dt-side-signs' }, ...signs(body, entry)),
    h(body, 'span', { class: 'dt-faint dt-number', text: pluralize(ops, 'op') }),
    h(body, 'span', { class: 'dt-faint dt-number', text: formatTime(seconds * 1e9) }),
    h(body, 'span', { class: 'dt-faint dt-number', text: clock(outline.recorded) })
  );
  scope.listen(node, 'click', () => {
    actions.open(entry);
  });
  return node;
}

/** How many findings of each severity. */
function signs(body: HTMLElement, { outline }: IEntry): HTMLElement[] {
  const findings = outline.findings ?? [];
  const found = SEVERITIES.map(
    severity => [severity, findings.filter(each => each.severity === severity).length] as const
  );
  const shown = found.filter(([, count]) => count > 0);
  if (shown.length === 0) {
    return [
      h(body, 'span', { class: 'dt-side-clean', text: '✓', title: 'No findings', aria: { label: 'no findings' } })
    ];
  }
  return shown.map(([severity, count]) => {
    const look = severityLook(severity, isDark(body));
    return h(
      body,
      'span',
      { class: 'dt-side-sign', style: { color: look.fill }, title: pluralize(count, severity) },
      h(body, 'span', { text: `${look.sign}${count}`, aria: { hidden: 'true' } }),
      h(body, 'span', { class: 'dt-hidden', text: pluralize(count, severity) })
    );
  });
}

function clock(recorded: string): string {
  const date = new Date(recorded);
  return Number.isNaN(date.getTime())
    ? ''
    : date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** The findings of each cell's last trace, the newest first; below them, folded, those of earlier runs. */
export function drawFindings({ entries }: ISidebar, drawing: IDrawing): void {
  const { body } = drawing;
  const current = latest(entries);
  const found = current.filter(hasFindings);
  if (found.length === 0) {
    const text = entries.length === 0 ? 'Nothing has been traced yet.' : 'No findings.';
    body.append(h(body, 'p', { class: 'dt-none', text }));
  }
  drawGroups(found, drawing);
  const past = entries.filter(entry => hasFindings(entry) && !current.includes(entry));
  if (past.length > 0) {
    const fill = (into: HTMLElement): void => {
      drawGroups(past, { ...drawing, body: into });
    };
    const title = h(body, 'span', { class: 'dt-faint', text: `Earlier runs: ${pluralize(countOf(past), 'finding')}` });
    body.append(folding(drawing, { key: 'past-findings', isOpen: false, summary: [title], fill }));
  }
}

function drawGroups(entries: readonly IEntry[], { body, scope, actions }: IDrawing): void {
  for (const entry of [...entries].reverse()) {
    const group = h(body, 'div', { class: 'dt-side-group', data: { trace: entry.key } });
    group.append(h(body, 'h4', { text: entry.label }));
    body.append(group);
    dress(group, entry.outline);
    const host = {
      reveal: (site: number) => {
        actions.reveal(entry, site);
      },
      insert: (edits: readonly IEdit[]) => {
        actions.insert(entry, edits);
      }
    };
    scope.add(mountFindings(group, entry.outline, new Selection(entry.outline, host)));
  }
}

function hasFindings({ outline }: IEntry): boolean {
  return (outline.findings?.length ?? 0) > 0;
}

function countOf(entries: readonly IEntry[]): number {
  return entries.reduce((sum, { outline }) => sum + (outline.findings?.length ?? 0), 0);
}

/** Errors and warnings of the last run of each cell: a note asks for nothing. */
export function countFindings(entries: readonly IEntry[]): number {
  const findings = latest(entries).flatMap(({ outline }) => outline.findings ?? []);
  return findings.filter(({ severity }) => severity !== 'note').length;
}
