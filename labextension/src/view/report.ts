/**
 * The whole report: what was traced, the findings, and the views as tabs, with one selection through all.
 */
import { timeOfOps } from '../layout/describe';
import { devicesInOrder } from '../layout/devices';
import { formatTime } from '../layout/units';
import type { ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { button, h, newId } from './dom';
import { mountFindings } from './findings';
import { mountLines } from './lines';
import { mountMemory } from './memory';
import { mountModules } from './modules';
import { mountOps } from './ops';
import { deviceChip, withCode } from './chips';
import { Disposables } from './disposables';
import type { Selection } from './selection';
import { mountTabs } from './tabs';
import { Theme } from './theme';
import { mountTimeline } from './timeline';

/** Beyond this many devices the legend says how many more there are. */
const MOST_CHIPS = 12;

/** `untraced` is the cell of an error that nobody traced: there are no ops to look at, but a way to have them. */
export function mountReport(
  el: HTMLElement,
  trace: ITrace,
  selection: Selection,
  untraced: string | null = null
): () => void {
  const disposables = new Disposables();
  const root = h(el, 'section', {
    class: 'dt-root dt-report',
    aria: { label: sentence(trace.language, 'report.label', { title: trace.title }).trim().slice(0, 200) },
    data: { devtrace: 'report', opCount: String(trace.ops.length) }
  });
  el.append(root);
  const theme = new Theme(root, trace, disposables);
  const id = newId();
  root.append(summary(root, trace, untraced !== null));
  disposables.add(mountFindings(root, trace, selection));
  const { traceAgain } = selection.host;
  if (untraced !== null && untraced !== '' && traceAgain) {
    root.append(traceButton(root, trace, disposables, () => traceAgain(untraced)));
  }
  const mountViews = (): (() => void) =>
    mountTabs(root, { id, language: trace.language }, [
      { name: 'tab.timeline', mount: panel => mountTimeline(panel, trace, selection, theme) },
      ...(trace.memory.length > 0
        ? [{ name: 'tab.memory' as const, mount: (panel: HTMLElement) => mountMemory(panel, trace, selection, theme) }]
        : []),
      { name: 'tab.modules', mount: panel => mountModules(panel, trace, selection) },
      { name: 'tab.lines', mount: panel => mountLines(panel, trace, selection) },
      { name: 'tab.ops', mount: panel => mountOps(panel, trace, selection, id) }
    ]);
  if (untraced === null) {
    disposables.add(mountViews());
  }
  root.dataset['ready'] = 'true';
  disposables.remove(root);
  return disposables.dispose;
}

/** Below the findings of a cell that nobody traced: the button that traces it. */
function traceButton(owner: Node, { language }: ITrace, disposables: Disposables, again: () => void): HTMLElement {
  const look = { class: 'dt-small', title: sentence(language, 'again.trace-title'), data: { devtrace: 'trace-again' } };
  return h(owner, 'p', {}, button(owner, disposables, sentence(language, 'again.trace'), again, look));
}

/** `In[7]  102 ops  1.2 ms   cpu  cuda:0 simulated`; of an error that nobody traced no op was counted. */
function summary(owner: Node, trace: ITrace, isUntraced: boolean): HTMLElement {
  const { ops, devices, language } = trace;
  const chips = devicesInOrder(trace)
    .slice(0, MOST_CHIPS)
    .map(id => deviceChip(owner, trace, id));
  if (devices.length > MOST_CHIPS) {
    const count = devices.length - MOST_CHIPS;
    chips.push(h(owner, 'span', { class: 'dt-faint', text: sentence(language, 'more.items', { count }) }));
  }
  const time = timeOfOps(trace, 0, ops.length);
  const counts = [sentence(language, 'count.ops', { count: ops.length }), ...(time > 0 ? [formatTime(time)] : [])];
  const facts = isUntraced ? [] : counts;
  if (trace.truncated > 0) {
    facts.push(sentence(language, 'report.folded', { count: trace.truncated }));
  }
  return h(
    owner,
    'header',
    { class: 'dt-summary' },
    h(owner, 'strong', {
      class: 'dt-title',
      text: (trace.title || sentence(language, 'report.untitled')).slice(0, 120)
    }),
    ...facts.map(text => h(owner, 'span', { class: 'dt-fact', text })),
    h(owner, 'span', { class: 'dt-grow' }),
    h(owner, 'span', { class: 'dt-devices' }, ...chips),
    ...trace.notes.slice(0, 20).map(text => h(owner, 'p', { class: 'dt-note' }, ...withCode(owner, text)))
  );
}
