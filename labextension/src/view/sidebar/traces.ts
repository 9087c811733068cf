/**
 * All traces of the notebook, the newest first.
 */
import { formatTime } from '../../layout/units';
import { COUNTS, countsOf, isAllClear, latest, rowsOf, type IEntry } from '../../model/entries';
import type { ISidebar } from '../../model/sidebar';
import { sentence, type Language } from '../../model/words/catalogue';
import { severityLook } from '../../paint/palette';
import { withCode } from '../chips';
import { h } from '../dom';
import { isDark } from '../theme';
import type { IDrawing } from './drawing';
import { folding } from './section';

export function drawTraces({ entries }: ISidebar, drawing: IDrawing): void {
  const { body, language } = drawing;
  if (entries.length === 0) {
    body.append(h(body, 'p', { class: 'dt-none' }, ...withCode(body, sentence(language, 'panel.no-traces'))));
    return;
  }
  const current = latest(entries);
  const list = (traces: readonly IEntry[]): HTMLElement[] =>
    traces.map(entry => {
      const past = current.includes(entry) ? '' : 'dt-side-past';
      return h(body, 'li', { class: past }, traceButton(entry, drawing));
    });
  const items = rowsOf(entries).map(row =>
    row.length === 1 ? list(row)[0] : h(body, 'li', {}, cleanRow(row, drawing, list))
  );
  body.append(h(body, 'ul', { class: 'dt-side-list', aria: { label: sentence(language, 'panel.traces') } }, ...items));
}

/** Clean runs, one below the other, as one line that opens. */
function cleanRow(row: readonly IEntry[], drawing: IDrawing, list: (row: readonly IEntry[]) => Node[]): HTMLElement {
  const { body, language } = drawing;
  const title = h(
    body,
    'span',
    { class: 'dt-faint' },
    ...(row.every(isAllClear)
      ? [h(body, 'span', { class: 'dt-side-clean', text: '✓', aria: { hidden: 'true' } })]
      : []),
    ` ${sentence(language, 'panel.clean-traces', { count: row.length })}`
  );
  const fill = (into: HTMLElement): void => {
    into.append(h(into, 'ul', { class: 'dt-side-list' }, ...list(row)));
  };
  const oldest = row[row.length - 1].key;
  return folding(drawing, { key: `clean-${oldest}`, isOpen: false, summary: [title], fill });
}

/** `In[7] train   ✗1 !2   3,012 ops   1.2 s   12:03`; of an error that nobody traced no op was timed. */
function traceButton(entry: IEntry, { body, scope, actions, language }: IDrawing): HTMLElement {
  const { label, ops, seconds, outline, key, isEarlier } = entry;
  const text = sentence(language, 'panel.earlier-kernel');
  const kernel = isEarlier ? [h(body, 'span', { class: 'dt-side-kernel', text })] : [];
  const measured = seconds > 0 ? [sentence(language, 'count.ops', { count: ops }), formatTime(seconds * 1e9)] : [];
  const node = h(
    body,
    'button',
    {
      class: 'dt-side-row dt-side-trace',
      title: sentence(language, 'panel.open-trace', { label }),
      data: { key: `trace-${key}`, trace: key },
      attributes: { type: 'button' }
    },
    h(body, 'strong', { class: 'dt-side-label', text: label }),
    ...kernel,
    h(body, 'span', { class: 'dt-side-signs' }, ...signs(language, body, entry)),
    ...[...measured, clock(language, outline.recorded)].map(text =>
      h(body, 'span', { class: 'dt-faint dt-number', text })
    )
  );
  scope.listen(node, 'click', () => {
    actions.open(entry);
  });
  return node;
}

/** How many findings of each severity. */
function signs(language: Language, body: HTMLElement, entry: IEntry): HTMLElement[] {
  const counts = countsOf([entry]);
  if (counts.length === 0) {
    if (!isAllClear(entry)) {
      return [];
    }
    const label = sentence(language, 'panel.no-findings');
    return [h(body, 'span', { class: 'dt-side-clean', text: '✓', title: label, aria: { label } })];
  }
  return counts.map(([severity, count]) => {
    const look = severityLook(severity, isDark(body));
    const words = sentence(language, COUNTS[severity], { count });
    return h(
      body,
      'span',
      { class: 'dt-side-sign', style: { color: look.fill }, title: words },
      h(body, 'span', { text: `${look.sign}${count}`, aria: { hidden: 'true' } }),
      h(body, 'span', { class: 'dt-hidden', text: words })
    );
  });
}

function clock(language: Language, recorded: string): string {
  const date = new Date(recorded);
  const parts = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const;
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleTimeString(language === 'en' ? [] : language, parts);
}
