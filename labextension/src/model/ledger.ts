/**
 * The ledger's exact counts, added up: by site here, and by line in whatever shows lines.
 */
import { listed, type ITrace } from './trace';

export interface ILedgerCounts {
  /** By device id. */
  readonly ops: Float64Array;
  h2d: number;
  d2h: number;
  d2d: number;
  syncs: number;
  cpuCompute: number;
  bytes: number;
}

const COUNTS = ['h2d', 'd2h', 'd2d', 'syncs', 'cpuCompute', 'bytes'] as const;

/** The counts of each site that the ledger has. */
export function countsBySite(trace: ITrace): Map<number, ILedgerCounts> {
  const { ledger, devices } = trace;
  const bySite = new Map<number, ILedgerCounts>();
  for (let row = 0; row < ledger.length; row++) {
    const site = ledger.site[row];
    const counts = bySite.get(site) ?? noCounts(devices.length);
    bySite.set(site, counts);
    add(counts, {
      ops: listed(ledger.ops, row).subarray(0, devices.length),
      h2d: ledger.h2d[row],
      d2h: ledger.d2h[row],
      d2d: ledger.d2d[row],
      syncs: ledger.syncs[row],
      cpuCompute: ledger.cpu_compute[row],
      bytes: ledger.bytes[row]
    });
  }
  return bySite;
}

/** The sum of some counts; null for none. */
export function addCounts(all: readonly ILedgerCounts[]): ILedgerCounts | null {
  if (all.length === 0) {
    return null;
  }
  const sum = noCounts(all[0].ops.length);
  for (const counts of all) {
    add(sum, counts);
  }
  return sum;
}

export function countOps(counts: ILedgerCounts | null): number {
  return counts?.ops.reduce((sum, count) => sum + count, 0) ?? 0;
}

function noCounts(devices: number): ILedgerCounts {
  return { ops: new Float64Array(devices), h2d: 0, d2h: 0, d2d: 0, syncs: 0, cpuCompute: 0, bytes: 0 };
}

function add(
  sum: ILedgerCounts,
  counts: Omit<ILedgerCounts, 'ops'> & { readonly ops: Int32Array | Float64Array }
): void {
  counts.ops.forEach((count, device) => (sum.ops[device] += count));
  for (const name of COUNTS) {
    sum[name] += counts[name];
  }
}
