/**
 * The ops that a timeline flags: one of each error and warning, and all ops of the picked finding. Notes ask for nothing and are flagged
 * only when they are picked.
 */
import type { Severity } from '../model/findings';
import type { ITrace } from '../model/trace';
import { xOf, type IRange } from './scale';

export interface IFlag {
  readonly finding: number;
  readonly op: number;
  readonly severity: Severity;
}

/** Flags beyond this many would hide each other. */
const MOST = 1000;
/** Flags closer than this (px) would cover each other's signs. */
const APART = 6;
/** A flag this far (px) out of view can still be seen. */
const EDGE = 8;

/** The picked finding's first, then in the order of findings, which is worst first. */
export function flagsOf(trace: ITrace, picked: number): IFlag[] {
  const flags = (trace.findings ?? []).flatMap(({ op, ops, severity }, finding): IFlag[] => {
    const flagged = finding === picked ? ops.slice(0, MOST) : severity === 'note' || op < 0 ? [] : [op];
    return flagged.map(op => ({ finding, op, severity }));
  });
  const isPicked = (flag: IFlag): boolean => flag.finding === picked;
  return [...flags.filter(isPicked), ...flags.filter(flag => !isPicked(flag))].slice(0, MOST);
}

export interface IPin extends IFlag {
  readonly x: number;
}

/** The flags in view that have room; of two that would touch, the one that comes first. */
export function pinsIn(flags: readonly IFlag[], start: Float64Array, range: IRange, width: number): IPin[] {
  const pins: IPin[] = [];
  for (const flag of flags) {
    const x = xOf(range, width, start[flag.op]);
    if (x > -EDGE && x < width + EDGE && !pins.some(pin => Math.abs(pin.x - x) < APART)) {
      pins.push({ ...flag, x });
    }
  }
  return pins;
}
