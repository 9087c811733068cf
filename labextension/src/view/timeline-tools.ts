/**
 * The tools above a timeline: search, zoom, and what the axis counts.
 */
import { zoomed } from '../layout/scale';
import { counted } from '../layout/units';
import { button, h } from './dom';
import type { Scope } from './scope';
import type { IPlot } from './timeline-pointer';

export function timelineTools(owner: Node, plot: IPlot, scope: Scope): HTMLElement {
  const found = h(owner, 'span', { class: 'dt-found', role: 'status' });
  const search = h(owner, 'input', {
    class: 'dt-input dt-search',
    aria: { label: 'Highlight ops' },
    attributes: { type: 'search', placeholder: 'Highlight ops, modules, lines', spellcheck: 'false' }
  });
  scope.listen(search, 'input', () => {
    const count = plot.find(search.value);
    found.textContent = search.value.trim() === '' ? '' : counted(count, 'op');
  });
  scope.listen(search, 'keydown', event => {
    event.stopPropagation();
  });
  return h(
    owner,
    'div',
    { class: 'dt-tools' },
    search,
    found,
    h(owner, 'span', { class: 'dt-grow' }),
    ...buttons(owner, plot, scope)
  );
}

function buttons(owner: Node, plot: IPlot, scope: Scope): HTMLElement[] {
  const middle = (): number => (plot.range.begin + plot.range.end) / 2;
  const clock = button(owner, 'Equal steps', {
    title: 'Make each op as wide as the next, instead of as long as it took',
    aria: { pressed: 'false' }
  });
  scope.listen(clock, 'click', () => {
    plot.setClock(plot.clock === 'time' ? 'order' : 'time');
    clock.setAttribute('aria-pressed', String(plot.clock === 'order'));
  });
  const act = (label: string, title: string, run: () => void): HTMLElement => {
    const result = button(owner, label, { title, aria: { label: title }, class: 'dt-icon' });
    scope.listen(result, 'click', run);
    return result;
  };
  return [
    clock,
    act('−', 'Zoom out (-)', () => plot.show(zoomed(plot.range, plot.whole, 1.8, middle()), true)),
    act('+', 'Zoom in (+)', () => plot.show(zoomed(plot.range, plot.whole, 1 / 1.8, middle()), true)),
    act('⤢', 'Show all (Home)', () => plot.show(plot.whole, true)),
    act('◎', 'Zoom to what is picked (Enter)', () => plot.showPicked())
  ];
}
