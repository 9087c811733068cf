/**
 * A pick in a trace: a finding, an op, a module or a site, each with the others that belong to it. Values, never changed.
 */
import { moduleOf, type ITrace } from './trace';

/** Ids, -1 for none. */
export interface IPicked {
  readonly finding: number;
  readonly op: number;
  readonly module: number;
  readonly site: number;
}

export const NOTHING_PICKED: IPicked = { finding: -1, op: -1, module: -1, site: -1 };

/** Pick a finding with its op, module and site; null where there is no such finding. */
export function pickFinding(trace: ITrace, finding: number): IPicked | null {
  const found = trace.findings?.[finding];
  if (!found) {
    return null;
  }
  const { op, site } = found;
  return { finding, op, module: op < 0 ? -1 : moduleOf(trace, op), site };
}

/** Pick an op with the first finding that names it; null where there is no such op. */
export function pickOp(trace: ITrace, op: number): IPicked | null {
  if (op < 0 || op >= trace.ops.length) {
    return null;
  }
  const finding = (trace.findings ?? []).findIndex(({ ops }) => ops.includes(op));
  return { finding, op, module: moduleOf(trace, op), site: trace.ops.site[op] };
}

export function pickModule(module: number): IPicked {
  return { ...NOTHING_PICKED, module };
}

/** Pick a site, and with it the first finding there. */
export function pickSite(trace: ITrace, site: number): IPicked {
  const finding = (trace.findings ?? []).findIndex(found => found.site === site);
  return pickFinding(trace, finding) ?? { ...NOTHING_PICKED, site };
}

/** The finding after the picked one, or before it; -1 past either end. Notes ask for nothing and are passed over. */
export function neighbourFinding(trace: ITrace, picked: IPicked, step: 1 | -1): number {
  const count = trace.findings?.filter(({ severity }) => severity !== 'note').length ?? 0;
  const next = picked.finding < 0 && step < 0 ? -1 : picked.finding + step;
  return next < count ? next : -1;
}

/** The op after the picked one, or before it, in the order of the trace; the first where none is picked. */
export function neighbourOp(trace: ITrace, picked: IPicked, step: 1 | -1): number {
  return picked.op < 0 ? 0 : Math.min(Math.max(picked.op + step, 0), trace.ops.length - 1);
}
