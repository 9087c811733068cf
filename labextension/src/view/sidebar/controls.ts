/**
 * The top of the sidebar: which notebook this is, how it stands with the kernel, and the two switches.
 */
import { sentence, type ISidebar } from '../../model/sidebar';
import { button, h } from '../dom';
import type { Disposables } from '../disposables';

export interface IControls {
  /** Run `%load_ext devtrace` in the kernel. */
  load(): void;
  traceCells(on: boolean): void;
  simulate(devices: number): void;
}

const CHOICES = [0, 1, 2, 4];

export function drawControls(shown: ISidebar, body: HTMLElement, scope: Disposables, actions: IControls): void {
  const { name, state, link, wanted } = shown;
  body.append(
    h(
      body,
      'header',
      { class: 'dt-side-head' },
      h(body, 'h2', { text: 'Devtrace' }),
      h(body, 'span', { class: 'dt-side-name', text: name, title: name })
    ),
    status(shown, body, scope, actions)
  );
  const usable = link === 'connected' && state !== null;
  const controls = h(
    body,
    'div',
    { class: 'dt-side-switches' },
    tracingSwitch(body, wanted.tracing ?? state?.tracing ?? false, usable, scope, actions),
    simulation(body, wanted.simulated ?? state?.simulated ?? 0, usable, scope, actions)
  );
  if (link !== 'nowhere') {
    body.append(controls);
  }
}

function status(shown: ISidebar, body: HTMLElement, scope: Disposables, actions: IControls): HTMLElement {
  const { link, waiting, refused } = shown;
  const node = h(body, 'div', { class: 'dt-side-status', role: 'status', data: { link } });
  const said = sentence(shown);
  if (said !== '') {
    node.append(h(body, 'p', { text: said }));
  }
  if (link === 'absent') {
    const load = button(body, 'Run %load_ext devtrace', { class: 'dt-primary', data: { key: 'load' } });
    scope.listen(load, 'click', () => {
      actions.load();
    });
    node.append(load);
  }
  if (waiting) {
    node.append(h(body, 'p', { text: 'Waiting for the kernel: it follows when the running cell has ended.' }));
  }
  if (refused !== '') {
    node.append(h(body, 'p', { class: 'dt-side-refused', text: refused }));
  }
  return node;
}

function tracingSwitch(
  body: HTMLElement,
  on: boolean,
  usable: boolean,
  scope: Disposables,
  actions: IControls
): HTMLElement {
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
    h(body, 'span', { text: 'Trace every cell' }),
    h(body, 'span', { class: 'dt-switch-track', aria: { hidden: 'true' } })
  );
  scope.listen(toggle, 'click', () => {
    if (usable) {
      actions.traceCells(!on);
    }
  });
  return toggle;
}

function simulation(
  body: HTMLElement,
  now: number,
  usable: boolean,
  scope: Disposables,
  actions: IControls
): HTMLElement {
  const choices = CHOICES.includes(now) ? CHOICES : [...CHOICES, now];
  const group = h(
    body,
    'fieldset',
    { class: 'dt-side-simulate', data: { control: 'simulate' } },
    h(body, 'legend', { text: 'Simulated devices' })
  );
  for (const devices of choices) {
    const input = h(body, 'input', {
      data: { key: `simulate-${devices}` },
      attributes: { type: 'radio', name: 'dt-simulate', value: String(devices) }
    });
    input.checked = devices === now;
    input.disabled = !usable;
    scope.listen(input, 'change', () => {
      actions.simulate(devices);
    });
    group.append(h(body, 'label', {}, input, h(body, 'span', { text: devices === 0 ? 'Off' : String(devices) })));
  }
  return group;
}
