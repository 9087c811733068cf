/**
 * Small elements that several views share: a device's chip, a site's link, text with `code` in it.
 */
import { deviceByName, deviceName, siteLabel, type ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { deviceLetter } from '../paint/palette';
import { button, h } from './dom';
import type { Disposables } from './disposables';
import type { Selection } from './selection';

/** A device's colour, hatch and letter with its name: never colour alone. */
export function deviceChip(owner: Node, trace: ITrace, device: number): HTMLElement {
  const name = deviceName(trace, device);
  const chip = h(
    owner,
    'span',
    { class: 'dt-chip', data: { device: name } },
    deviceSwatch(owner, trace, device),
    h(owner, 'span', { text: name })
  );
  if (trace.devices.simulated[device] === 1) {
    const text = sentence(trace.language, 'device.simulated');
    chip.append(h(owner, 'small', { class: 'dt-simulated', text }));
  }
  return chip;
}

/** The chip of a device by its name, which the trace need not know. */
export function namedChip(owner: Node, trace: ITrace, name: string): HTMLElement {
  const device = deviceByName(trace, name);
  return device < 0
    ? h(owner, 'span', { class: 'dt-chip', text: name, data: { device: name } })
    : deviceChip(owner, trace, device);
}

export function deviceSwatch(owner: Node, trace: ITrace, device: number): HTMLElement {
  return h(owner, 'i', {
    class: 'dt-swatch',
    text: deviceLetter(deviceName(trace, device)),
    style: deviceStyle(device),
    aria: { hidden: 'true' }
  });
}

export function deviceStyle(device: number): Record<string, string> {
  return {
    '--dt-fill': `var(--dt-device-${device})`,
    '--dt-ink': `var(--dt-ink-${device})`,
    '--dt-hatch': `var(--dt-hatch-${device})`
  };
}

/** The parts of a view are made from these; listeners go into `disposables`. */
export interface IViewContext {
  readonly owner: Node;
  readonly trace: ITrace;
  readonly selection: Selection;
  readonly disposables: Disposables;
}

/** `In[5] line 1`, which takes the user there where the surroundings can. */
export function siteLink({ owner, trace, selection, disposables }: IViewContext, site: number): HTMLElement {
  const label = siteLabel(trace, site);
  const { reveal } = selection.host;
  if (!reveal) {
    return h(owner, 'span', { class: 'dt-site', text: label });
  }
  const link = button(owner, label, {
    class: 'dt-site dt-link',
    title: sentence(trace.language, 'site.go', { site: label })
  });
  disposables.listen(link, 'click', event => {
    event.stopPropagation();
    reveal(site);
  });
  return link;
}

/** Text in which `backticks` mark code. */
export function withCode(owner: Node, text: string): Node[] {
  return text
    .slice(0, 4000)
    .split('`')
    .map((part, i) =>
      i % 2 === 1 ? h(owner, 'code', { text: part }) : (owner.ownerDocument ?? document).createTextNode(part)
    );
}
