/**
 * All traces of the notebook, the newest first.
 */
import { pluralize, formatTime } from '../../layout/units';
import { countsOf, latest, rowsOf, type IEntry } from '../../model/entries';
import type { ISidebar } from '../../model/sidebar';
import { severityLook } from '../../paint/palette';
import { h } from '../dom';
import { isDark } from '../theme';
import type { IDrawing } from './drawing';
import { folding } from './section';

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
  const current = latest(entries);
  const list = (traces: readonly IEntry[]): HTMLElement[] =>
    traces.map(entry => {
      const past = current.includes(entry) ? '' : 'dt-side-past';
      return h(body, 'li', { class: past }, traceButton(entry, drawing));
    });
  const items = rowsOf(entries).map(row =>
    row.length === 1 ? list(row)[0] : h(body, 'li', {}, cleanRow(row, drawing, list))
  );
  body.append(h(body, 'ul', { class: 'dt-side-list', aria: { label: 'Traces' } }, ...items));
}

/** Clean runs, one below the other, as one line that opens. */
function cleanRow(row: readonly IEntry[], drawing: IDrawing, list: (row: readonly IEntry[]) => Node[]): HTMLElement {
  const { body } = drawing;
  const title = h(
    body,
    'span',
    { class: 'dt-faint' },
    h(body, 'span', { class: 'dt-side-clean', text: '✓', aria: { hidden: 'true' } }),
    ` ${pluralize(row.length, 'trace')} without errors or warnings`
  );
  const fill = (into: HTMLElement): void => {
    into.append(h(into, 'ul', { class: 'dt-side-list' }, ...list(row)));
  };
  const oldest = row[row.length - 1].key;
  return folding(drawing, { key: `clean-${oldest}`, isOpen: false, summary: [title], fill });
}

/** `In[7] train   ✗1 !2   3,012 ops   1.2 s   12:03` */
function traceButton(entry: IEntry, { body, scope, actions }: IDrawing): HTMLElement {
  const { label, ops, seconds, outline, key, isEarlier } = entry;
  const kernel = isEarlier ? [h(body, 'span', { class: 'dt-side-kernel', text: 'earlier kernel' })] : [];
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
    ...kernel,
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
function signs(body: HTMLElement, entry: IEntry): HTMLElement[] {
  const counts = countsOf([entry]);
  if (counts.length === 0) {
    return [
      h(body, 'span', { class: 'dt-side-clean', text: '✓', title: 'No findings', aria: { label: 'no findings' } })
    ];
  }
  return counts.map(([severity, count]) => {
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
