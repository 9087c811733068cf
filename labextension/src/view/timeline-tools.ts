/**
 * The tools above a timeline: search, zoom, and what the axis counts.
 */
import { find, setClock, showAll, showPicked, zoom, type ITimelineState } from '../layout/timeline-state';
import { sentence } from '../model/words/catalogue';
import type { Disposables } from './disposables';
import { button, h, searchField } from './dom';
import type { IPlot } from './timeline-pointer';

export function timelineTools(owner: Node, plot: IPlot, disposables: Disposables): HTMLElement {
  const { language } = plot.state.timeline.trace;
  const count = h(owner, 'span', { class: 'dt-found', role: 'status' });
  const look = (words: string): void => {
    plot.change(find(plot.state, words));
    const { found } = plot.state;
    count.textContent = found ? sentence(language, 'count.ops', { count: found.count }) : '';
  };
  const [label, hint] = [sentence(language, 'timeline.search'), sentence(language, 'timeline.search-for')];
  const search = searchField(owner, disposables, label, hint, look);
  const space = h(owner, 'span', { class: 'dt-grow' });
  return h(owner, 'div', { class: 'dt-tools' }, search, count, space, ...buttons(owner, plot, disposables));
}

function buttons(owner: Node, plot: IPlot, disposables: Disposables): HTMLElement[] {
  const { language } = plot.state.timeline.trace;
  const turn = (): void => {
    plot.change(setClock(plot.state, plot.state.timeline.clock === 'time' ? 'order' : 'time'));
    clock.setAttribute('aria-pressed', String(plot.state.timeline.clock === 'order'));
  };
  const clock = button(owner, disposables, sentence(language, 'timeline.equal'), turn, {
    title: sentence(language, 'timeline.equal-title'),
    aria: { pressed: 'false' }
  });
  const made = (
    label: string,
    key: 'timeline.zoom-out' | 'timeline.zoom-in' | 'timeline.all' | 'timeline.picked',
    step: (state: ITimelineState) => ITimelineState
  ): HTMLElement => {
    const title = sentence(language, key);
    const act = (): void => plot.change(step(plot.state));
    return button(owner, disposables, label, act, { title, aria: { label: title }, class: 'dt-icon' });
  };
  return [
    clock,
    made('−', 'timeline.zoom-out', state => zoom(state, 1.8)),
    made('+', 'timeline.zoom-in', state => zoom(state, 1 / 1.8)),
    made('⤢', 'timeline.all', showAll),
    made('◎', 'timeline.picked', showPicked)
  ];
}
