/**
 * The colour and letter of what memory is for, from the one table that Python reads too.
 */
import table from '../../../src/devtrace/drawing/curves_palette.json';
import type { MemoryKind } from '../model/memory';
import type { IAppearance } from './palette';

/** Lightness by kind, for users who want no colour. */
const GREYS: Readonly<Record<MemoryKind, readonly [fill: string, ink: string]>> = {
  parameter: ['#4a4a4a', '#ffffff'],
  buffer: ['#8d8d8d', '#111111'],
  'optimizer-state': ['#a6a6a6', '#111111'],
  gradient: ['#d4d4d4', '#111111'],
  named: ['#5e5e5e', '#ffffff'],
  activation: ['#b8b8b8', '#111111'],
  temporary: ['#f0f0f0', '#111111']
};

export function memoryLook(kind: MemoryKind, { dark, palette }: IAppearance): { fill: string; ink: string } {
  const look = table[kind];
  const colour = dark ? [look.dark, look.dark_ink] : [look.light, look.light_ink];
  const [fill, ink] = palette === 'grey' ? GREYS[kind] : colour;
  return { fill, ink };
}

export function memoryLetter(kind: MemoryKind): string {
  return table[kind].letter;
}
