/**
 * The colour, hatch and letter of a device, from the one table that Python reads too.
 */
import palette from '../../../src/devtrace/drawing/palette.json';

export type Hatch = 'none' | 'diagonal' | 'horizontal' | 'dots' | 'back' | 'vertical' | 'cross' | 'grid';

export interface IDeviceLook {
  readonly fill: string;
  /** Text on the fill, with a contrast of at least 4.4. */
  readonly ink: string;
  readonly hatch: Hatch;
  readonly letter: string;
}

type Kind = keyof typeof palette.kinds;

export type Palette = 'colour' | 'grey';

/** Lightness by kind, for who wants no colour: hatch and letter tell the rest. */
const GREYS: Readonly<Record<Kind, readonly [fill: string, ink: string]>> = {
  cpu: ['#d4d4d4', '#111111'],
  cuda: ['#5e5e5e', '#ffffff'],
  mps: ['#8d8d8d', '#111111'],
  xpu: ['#a6a6a6', '#111111'],
  meta: ['#f0f0f0', '#111111'],
  other: ['#767676', '#ffffff']
};

let chosen: Palette = 'colour';

/** From here on devices look like this; what is drawn already has to be drawn again. */
export function choosePalette(name: Palette): void {
  chosen = name;
}

export function deviceLook(name: string, dark: boolean): IDeviceLook {
  const [kind, index = ''] = name.split(':');
  const known = isKind(kind) ? kind : 'other';
  const { letter, steps } = palette.kinds[known];
  const at = /^\d{1,6}$/.test(index) ? Number(index) : 0;
  const step = steps[at % steps.length];
  const colour = dark ? [step.dark, step.dark_ink] : [step.light, step.light_ink];
  const [fill, ink] = chosen === 'grey' ? GREYS[known] : colour;
  return {
    fill,
    ink,
    hatch: step.hatch as Hatch,
    letter: kind === 'cpu' || index === '' ? letter : `${letter}${at}`
  };
}

function isKind(name: string): name is Kind {
  return Object.hasOwn(palette.kinds, name);
}

export function severityLook(severity: 'error' | 'warning' | 'note', dark: boolean): { fill: string; sign: string } {
  const look = palette.severity[severity];
  return { fill: dark ? look.dark : look.light, sign: look.sign };
}
