/**
 * The stripe beside a traced line and the card with the line's counts: plain DOM, which the editor puts where it belongs.
 */
import { formatBytes } from '../layout/units';
import type { IMark, IStripe } from '../model/stripes';
import { sentence } from '../model/words/catalogue';
import { hatchCss } from '../paint/hatch';
import { deviceLook, severityLook } from '../paint/palette';
import { h } from './dom';
import { withCode } from './chips';
import { languageAround } from './language';
import { chipOf } from './sidebar/device';
import { isDark } from './theme';

/** Devices of one line that are shown side by side. */
const MOST = 4;

/** `first`: no line above has the same devices, so the letters are shown. The theme chooses between the two colours by CSS. */
export function stripeElement(owner: Node, stripe: IStripe, first: boolean, stale: boolean): HTMLElement {
  const devices = stripe.devices.slice(0, MOST);
  const bands = devices.map(({ device }) => {
    const [light, dark] = [deviceLook(device, false), deviceLook(device, true)];
    return h(
      owner,
      'i',
      {
        class: 'dt-stripe-band',
        style: {
          '--dt-fill-light': light.fill,
          '--dt-fill-dark': dark.fill,
          '--dt-ink-light': light.ink,
          '--dt-ink-dark': dark.ink,
          '--dt-hatch-light': hatchCss(light.hatch, light.ink),
          '--dt-hatch-dark': hatchCss(dark.hatch, dark.ink)
        }
      },
      first ? light.letter : ''
    );
  });
  return h(
    owner,
    'div',
    {
      class: `dt-stripe${first ? ' dt-first' : ''}${stale ? ' dt-stale' : ''}`,
      data: {
        line: String(stripe.line),
        devices: stripe.devices.map(({ device }) => device).join(' '),
        stale: String(stale)
      }
    },
    ...bands
  );
}

export function stripeCard(owner: HTMLElement, stripe: IStripe, stale: boolean): HTMLElement {
  const language = languageAround(owner);
  const facts = [
    ['stripe.h2d', stripe.h2d],
    ['stripe.d2h', stripe.d2h],
    ['stripe.d2d', stripe.d2d],
    ['stripe.syncs', stripe.syncs],
    ['stripe.cpu', stripe.cpuCompute]
  ] as const;
  const list = h(owner, 'ul', { class: 'dt-tip-list' });
  for (const { device, ops, simulated } of stripe.devices) {
    list.append(
      h(owner, 'li', {}, chipOf(owner, device, simulated), ` ${sentence(language, 'count.ops', { count: ops })}`)
    );
  }
  for (const [what, count] of facts.filter(([, each]) => each > 0)) {
    list.append(h(owner, 'li', { text: sentence(language, what, { count }) }));
  }
  if (isApart(stripe)) {
    list.append(h(owner, 'li', { class: 'dt-faint', text: sentence(language, 'stripe.apart') }));
  }
  if (stripe.bytes > 0) {
    list.append(h(owner, 'li', { text: sentence(language, 'stripe.copied', { size: formatBytes(stripe.bytes) }) }));
  }
  const title = stale ? sentence(language, 'stripe.edited', { label: stripe.label }) : stripe.label;
  return tip(owner, h(owner, 'strong', { text: title }), list);
}

/** What a line did on the CPU beside its work on a device was no part of that: an optimizer's step counts, say. */
function isApart({ devices, cpuCompute }: IStripe): boolean {
  return cpuCompute === 0 && devices.length > 1 && devices.some(({ device }) => device === 'cpu');
}

export function markCard(owner: HTMLElement, marks: readonly IMark[]): HTMLElement {
  const parts = marks.map(({ severity, message, label }) => {
    const look = severityLook(severity, isDark(owner));
    const sign = h(owner, 'span', { class: 'dt-sign', text: look.sign, style: { color: look.fill } });
    return h(owner, 'p', {}, sign, ' ', h(owner, 'strong', { text: label }), ' ', ...withCode(owner, message));
  });
  return tip(owner, ...parts);
}

function tip(owner: HTMLElement, ...parts: Node[]): HTMLElement {
  const dark = isDark(owner) ? ' dt-dark' : '';
  return h(owner, 'div', { class: `dt-root dt-tip${dark}`, role: 'tooltip' }, ...parts);
}
