/**
 * The colour, hatch and letter of a device, from the one table that Python reads too.
 */
import palette from '../../../src/devtrace/palette.json';

export type Hatch = 'none' | 'diagonal' | 'horizontal' | 'dots' | 'back' | 'vertical' | 'cross' | 'grid';

export interface IDeviceLook {
  readonly fill: string;
  /** Text on the fill, with a contrast of at least 4.4. */
  readonly ink: string;
  readonly hatch: Hatch;
  readonly letter: string;
}

type Kind = keyof typeof palette.kinds;

export function deviceLook(name: string, dark: boolean): IDeviceLook {
  const [kind, index = ''] = name.split(':');
  const { letter, steps } = palette.kinds[isKind(kind) ? kind : 'other'];
  const at = /^\d{1,6}$/.test(index) ? Number(index) : 0;
  const step = steps[at % steps.length];
  return {
    fill: dark ? step.dark : step.light,
    ink: dark ? step.dark_ink : step.light_ink,
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
