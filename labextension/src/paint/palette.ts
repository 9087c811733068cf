/**
 * The colour, hatch and letter of a device, from the one table that Python reads too.
 */
import table from '../../../src/devtrace/report/palette.json';

export type Hatch = 'none' | 'diagonal' | 'horizontal' | 'dots' | 'back' | 'vertical' | 'cross' | 'grid';

export interface IDeviceLook {
  readonly fill: string;
  /** Text on the fill, with a contrast of at least 4.4. */
  readonly ink: string;
  readonly hatch: Hatch;
  readonly letter: string;
}

type Kind = keyof typeof table.kinds;

export function deviceLook(name: string, dark: boolean): IDeviceLook {
  const { kind, at, letter } = parse(name);
  const { steps } = table.kinds[kind];
  const step = steps[at % steps.length];
  const [fill, ink] = dark ? [step.dark, step.dark_ink] : [step.light, step.light_ink];
  return { fill, ink, hatch: step.hatch, letter };
}

/** `G1` of `cuda:1`, `C` of `cpu` */
export function deviceLetter(name: string): string {
  return parse(name).letter;
}

function parse(name: string): { kind: Kind; at: number; letter: string } {
  const [written, index = ''] = name.split(':');
  const kind = isKind(written) ? written : 'other';
  const at = /^\d{1,6}$/.test(index) ? Number(index) : 0;
  const { letter } = table.kinds[kind];
  return { kind, at, letter: kind === 'cpu' || index === '' ? letter : `${letter}${at}` };
}

function isKind(name: string): name is Kind {
  return Object.hasOwn(table.kinds, name);
}

export function severityLook(severity: 'error' | 'warning' | 'note', dark: boolean): { fill: string; sign: string } {
  const look = table.severity[severity];
  return { fill: dark ? look.dark : look.light, sign: look.sign };
}
