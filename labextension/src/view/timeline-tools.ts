/**
 * The tools above a timeline: search, zoom, and what the axis counts.
 */
import { find, setClock, showAll, showPicked, zoom, type ITimelineState } from '../layout/timeline-state';
import { sentence } from '../model/words/catalogue';
import type { Disposables } from './disposables';
import { button, h } from './dom';
import type { IPlot } from './timeline-pointer';

export function timelineTools(owner: Node, plot: IPlot, disposables: Disposables): HTMLElement {
  const { language } = plot.state.timeline.trace;
  const count = h(owner, 'span', { class: 'dt-found', role: 'status' });
  const search = h(owner, 'input', {
    class: 'dt-input dt-search',
    aria: { label: sentence(language, 'timeline.search') },
    attributes: { type: 'search', placeholder: sentence(language, 'timeline.search-for'), spellcheck: 'false' }
  });
  disposables.listen(search, 'input', () => {
    plot.change(find(plot.state, search.value));
    const { found } = plot.state;
    count.textContent = found ? sentence(language, 'count.ops', { count: found.count }) : '';
  });
  disposables.listen(search, 'keydown', event => {
    event.stopPropagation();
  });
  const space = h(owner, 'span', { class: 'dt-grow' });
  return h(owner, 'div', { class: 'dt-tools' }, search, count, space, ...buttons(owner, plot, disposables));
}

function buttons(owner: Node, plot: IPlot, disposables: Disposables): HTMLElement[] {
  const { language } = plot.state.timeline.trace;
  const clock = button(owner, sentence(language, 'timeline.equal'), {
    title: sentence(language, 'timeline.equal-title'),
    aria: { pressed: 'false' }
  });
  disposables.listen(clock, 'click', () => {
    plot.change(setClock(plot.state, plot.state.timeline.clock === 'time' ? 'order' : 'time'));
    clock.setAttribute('aria-pressed', String(plot.state.timeline.clock === 'order'));
  });
  const act = (
    label: string,
    key: 'timeline.zoom-out' | 'timeline.zoom-in' | 'timeline.all' | 'timeline.picked',
    step: (state: ITimelineState) => ITimelineState
  ): HTMLElement => {
    const title = sentence(language, key);
    const result = button(owner, label, { title, aria: { label: title }, class: 'dt-icon' });
    disposables.listen(result, 'click', () => plot.change(step(plot.state)));
    return result;
  };
  return [
    clock,
    act('−', 'timeline.zoom-out', state => zoom(state, 1.8)),
    act('+', 'timeline.zoom-in', state => zoom(state, 1 / 1.8)),
    act('⤢', 'timeline.all', showAll),
    act('◎', 'timeline.picked', showPicked)
  ];
}
