/**
 * The colour and letter of what memory is for, from the one table that Python reads too.
 */
import table from '../../../src/devtrace/drawing/curves_palette.json';
import type { MemoryKind } from '../model/memory';

export function memoryLook(kind: MemoryKind, dark: boolean): { fill: string; ink: string } {
  const look = table[kind];
  return dark ? { fill: look.dark, ink: look.dark_ink } : { fill: look.light, ink: look.light_ink };
}

export function memoryLetter(kind: MemoryKind): string {
  return table[kind].letter;
}
