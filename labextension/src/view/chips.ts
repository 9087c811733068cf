/**
 * Small elements that several views share: a device's chip, a site's link, text with `code` in it.
 */
import { deviceByName, deviceName, siteLabel, type ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { deviceLetter } from '../paint/palette';
import { button, h } from './dom';
import type { Disposables } from './disposables';
import type { Selection } from './selection';

/** A device as it is drawn: its name, and the custom properties for what is filled in its colour. */
interface IDrawnDevice {
  readonly name: string;
  readonly style: Readonly<Record<string, string>>;
  readonly simulated?: boolean;
}

/** A device's colour, hatch and letter with its name: never colour alone. */
export function chip(owner: Node, language: Language, device: IDrawnDevice, text = device.name): HTMLElement {
  const named = h(owner, 'span', { text });
  const words = { class: 'dt-simulated', text: sentence(language, 'device.simulated') };
  const simulated = device.simulated ? [h(owner, 'small', words)] : [];
  return h(
    owner,
    'span',
    { class: 'dt-chip', data: { device: device.name } },
    swatch(owner, device),
    named,
    ...simulated
  );
}

export function swatch(owner: Node, { name, style }: IDrawnDevice): HTMLElement {
  const text = name === '?' ? '?' : deviceLetter(name);
  return h(owner, 'i', { class: 'dt-swatch', text, style, aria: { hidden: 'true' } });
}

export function deviceChip(owner: Node, trace: ITrace, device: number): HTMLElement {
  return chip(owner, trace.language, drawnDevice(trace, device));
}

/** The chip of a device by its name, which the trace need not know. */
export function namedChip(owner: Node, trace: ITrace, name: string): HTMLElement {
  const device = deviceByName(trace, name);
  return device < 0
    ? h(owner, 'span', { class: 'dt-chip', text: name, data: { device: name } })
    : deviceChip(owner, trace, device);
}

/** The colours are those that the report was dressed in. */
export function drawnDevice(trace: ITrace, device: number): IDrawnDevice {
  const simulated = trace.devices.simulated[device] === 1;
  return { name: deviceName(trace, device), style: deviceStyle(device), simulated };
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
  const title = sentence(trace.language, 'site.go', { site: label });
  const { reveal } = selection.host;
  return reveal
    ? lineLink(owner, disposables, label, title, () => reveal(site))
    : h(owner, 'span', { class: 'dt-site', text: label });
}

export function lineLink(owner: Node, scope: Disposables, label: string, title: string, go: () => void): HTMLElement {
  const act = (event: MouseEvent): void => {
    event.stopPropagation();
    go();
  };
  return button(owner, scope, label, act, { class: 'dt-site dt-link', title });
}

/** Text in which `backticks` mark code; a long name breaks after a dot. */
export function withCode(owner: Node, text: string): Node[] {
  const broken = (code: string): Array<Node | string> =>
    code.split(/(?<=\.)/).flatMap((part, i) => (i === 0 ? [part] : [h(owner, 'wbr'), part]));
  return text
    .slice(0, 4000)
    .split('`')
    .map((part, i) =>
      i % 2 === 1 ? h(owner, 'code', {}, ...broken(part)) : (owner.ownerDocument ?? document).createTextNode(part)
    );
}
