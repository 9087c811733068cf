/**
 * The tools above a timeline: search, zoom, and what the axis counts.
 */
import { find, setClock, showAll, showPicked, zoom, type ITimelineState } from '../layout/timeline-state';
import { pluralize } from '../layout/units';
import type { Disposables } from './disposables';
import { button, h } from './dom';
import type { IPlot } from './timeline-pointer';

export function timelineTools(owner: Node, plot: IPlot, disposables: Disposables): HTMLElement {
  const count = h(owner, 'span', { class: 'dt-found', role: 'status' });
  const search = h(owner, 'input', {
    class: 'dt-input dt-search',
    aria: { label: 'Highlight ops' },
    attributes: { type: 'search', placeholder: 'Highlight ops, modules, lines', spellcheck: 'false' }
  });
  disposables.listen(search, 'input', () => {
    plot.change(find(plot.state, search.value));
    const { found } = plot.state;
    count.textContent = found ? pluralize(found.count, 'op') : '';
  });
  disposables.listen(search, 'keydown', event => {
    event.stopPropagation();
  });
  const space = h(owner, 'span', { class: 'dt-grow' });
  return h(owner, 'div', { class: 'dt-tools' }, search, count, space, ...buttons(owner, plot, disposables));
}

function buttons(owner: Node, plot: IPlot, disposables: Disposables): HTMLElement[] {
  const clock = button(owner, 'Equal steps', {
    title: 'Make each op as wide as the next, instead of as long as it took',
    aria: { pressed: 'false' }
  });
  disposables.listen(clock, 'click', () => {
    plot.change(setClock(plot.state, plot.state.timeline.clock === 'time' ? 'order' : 'time'));
    clock.setAttribute('aria-pressed', String(plot.state.timeline.clock === 'order'));
  });
  const act = (label: string, title: string, step: (state: ITimelineState) => ITimelineState): HTMLElement => {
    const result = button(owner, label, { title, aria: { label: title }, class: 'dt-icon' });
    disposables.listen(result, 'click', () => plot.change(step(plot.state)));
    return result;
  };
  return [
    clock,
    act('−', 'Zoom out (-)', state => zoom(state, 1.8, undefined, plot.now)),
    act('+', 'Zoom in (+)', state => zoom(state, 1 / 1.8, undefined, plot.now)),
    act('⤢', 'Show all (Home)', state => showAll(state, plot.now)),
    act('◎', 'Zoom to what is picked (Enter)', state => showPicked(state, plot.now))
  ];
}
