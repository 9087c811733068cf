/**
 * A device by its name: swatch and chip as in the report, where there is no trace to take them from.
 */
import { hatchCss } from '../../paint/hatch';
import { sentence } from '../../model/words/catalogue';
import { deviceLook } from '../../paint/palette';
import { chip, swatch } from '../chips';
import { h } from '../dom';
import { languageAround } from '../language';
import { isDark } from '../theme';

/** Custom properties for whatever is filled in a device's colour. */
function lookOf(owner: HTMLElement, device: string): Record<string, string> {
  const look = deviceLook(device, isDark(owner));
  return { '--dt-fill': look.fill, '--dt-ink': look.ink, '--dt-hatch': hatchCss(look.hatch, look.ink) };
}

export function swatchOf(owner: HTMLElement, device: string): HTMLElement {
  return swatch(owner, { name: device, style: lookOf(owner, device) });
}

export function chipOf(owner: HTMLElement, device: string, simulated: boolean): HTMLElement {
  const language = languageAround(owner);
  const text = device === '?' ? sentence(language, 'held.not-asked') : device;
  return chip(owner, language, { name: device, style: lookOf(owner, device), simulated }, text);
}

/** A bar whose length is a share of the largest. */
export function barOf(owner: HTMLElement, device: string, share: number): HTMLElement {
  const width = share > 0 ? `${Math.max(share * 100, 2).toFixed(1)}%` : '0';
  return h(
    owner,
    'span',
    { class: 'dt-side-bar', aria: { hidden: 'true' } },
    h(owner, 'span', { class: 'dt-side-fill', style: { ...lookOf(owner, device), width } })
  );
}
