/**
 * The top of the sidebar: which notebook this is, how it stands with the kernel, and the two switches.
 */
import { linkSentence, shownState, type ISidebar } from '../../model/sidebar';
import { sentence } from '../../model/words/catalogue';
import { button, h } from '../dom';
import type { IDrawing } from './drawing';

/** So many CUDA devices can be simulated by a press. */
export const CHOICES = [0, 1, 2, 4];

export function drawControls(shown: ISidebar, drawing: IDrawing): void {
  const { body, language } = drawing;
  const { name, link } = shown;
  body.append(
    h(
      body,
      'header',
      { class: 'dt-side-head' },
      h(body, 'h2', { text: sentence(language, 'panel.name') }),
      h(body, 'span', { class: 'dt-side-name', text: name, title: name })
    ),
    status(shown, drawing)
  );
  if (link !== 'nowhere') {
    body.append(
      h(body, 'div', { class: 'dt-side-switches' }, tracingSwitch(shown, drawing), simulation(shown, drawing))
    );
  }
}

function isUsable({ link, state }: ISidebar): boolean {
  return link === 'connected' && state !== null;
}

function status(shown: ISidebar, { body, scope, actions, language }: IDrawing): HTMLElement {
  const { link, isSlow, refused } = shown;
  const node = h(body, 'div', { class: 'dt-side-status', role: 'status', data: { link } });
  const text = linkSentence(language, shown);
  if (text !== '') {
    node.append(h(body, 'p', { text }));
  }
  if (link === 'absent') {
    const look = { class: 'dt-primary', data: { key: 'load' } };
    node.append(button(body, scope, sentence(language, 'panel.load'), () => actions.load(), look));
  }
  if (isSlow) {
    node.append(h(body, 'p', { class: 'dt-side-slow', text: sentence(language, 'panel.slow') }));
  }
  if (refused !== '') {
    node.append(h(body, 'p', { class: 'dt-side-refused', text: refused }));
  }
  return node;
}

function tracingSwitch(shown: ISidebar, { body, scope, actions, language }: IDrawing): HTMLElement {
  const on = shownState(shown).tracing;
  const usable = isUsable(shown);
  const toggle = h(
    body,
    'button',
    {
      class: 'dt-switch',
      role: 'switch',
      aria: { checked: String(on), disabled: String(!usable) },
      data: { key: 'tracing', control: 'tracing' },
      attributes: { type: 'button' }
    },
    h(body, 'span', { text: sentence(language, 'panel.trace') }),
    h(body, 'span', { class: 'dt-switch-track', aria: { hidden: 'true' } })
  );
  scope.listen(toggle, 'click', () => {
    if (usable) {
      actions.traceCells(!on);
    }
  });
  return toggle;
}

function simulation(shown: ISidebar, { body, scope, actions, language }: IDrawing): HTMLElement {
  const now = shownState(shown).simulated;
  const choices = CHOICES.includes(now) ? CHOICES : [...CHOICES, now];
  const group = h(
    body,
    'fieldset',
    { class: 'dt-side-simulate', data: { control: 'simulate' } },
    h(body, 'legend', { text: sentence(language, 'panel.simulate') })
  );
  for (const devices of choices) {
    const input = h(body, 'input', {
      data: { key: `simulate-${devices}` },
      attributes: { type: 'radio', name: 'dt-simulate', value: String(devices) }
    });
    input.checked = devices === now;
    input.disabled = !isUsable(shown);
    scope.listen(input, 'change', () => {
      actions.simulate(devices);
    });
    const text = devices === 0 ? sentence(language, 'panel.simulate-off') : String(devices);
    group.append(h(body, 'label', {}, input, h(body, 'span', { text })));
  }
  return group;
}
