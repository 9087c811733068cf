/**
 * The ranks of a job. Those that did the same ops in the same order, each on its own device, are one group, of which one rank is drawn.
 */
import { deviceName, type ITrace } from '../model/trace';

export interface IRankGroup {
  /** In their order. */
  readonly ranks: readonly number[];
  /** The rank that stands for all of them: the first with an error or a warning, else the lowest. */
  readonly shown: number;
  /** The ops of that rank. */
  readonly ops: number;
  /** Only their collectives are in the trace: what else they did is not known to be the same. */
  readonly isLeftOut: boolean;
}

/** The groups of a trace by their lowest rank; none where the trace is not of several ranks. */
export interface IRanks {
  readonly groups: readonly IRankGroup[];
  readonly total: number;
}

const NO_RANKS: IRanks = { groups: [], total: 0 };

export function groupRanks(trace: ITrace): IRanks {
  if (new Set(trace.threads.rank).size < 2) {
    return NO_RANKS;
  }
  const leftOut = new Map(trace.leftOut);
  const doings = doingsOf(trace);
  for (const rank of leftOut.keys()) {
    doings.set(rank, doings.get(rank) ?? NOTHING);
  }
  if (doings.size < 2) {
    return NO_RANKS;
  }
  const members = new Map<string, number[]>();
  for (const [rank, { key }] of doings) {
    const like = leftOut.get(rank) ?? rank;
    const found = like < 0 ? '' : (doings.get(like)?.key ?? key);
    members.set(found, [...(members.get(found) ?? []), rank]);
  }
  const flagged = flaggedRanks(trace);
  const groups = [...members].map(([key, unsorted]) => {
    const ranks = unsorted.sort((a, b) => a - b);
    const whole = ranks.filter(rank => !leftOut.has(rank));
    const shown = whole.find(rank => flagged.has(rank)) ?? whole.at(0) ?? ranks[0];
    return { ranks, shown, ops: doings.get(shown)?.ops ?? 0, isLeftOut: key === '' };
  });
  return { groups: groups.sort((a, b) => a.ranks[0] - b.ranks[0]), total: doings.size };
}

/** The rank that runs an op, -1 for none. */
export function rankOfOp(trace: ITrace, op: number): number {
  return trace.threads.rank[trace.ops.thread[op]] ?? -1;
}

function flaggedRanks(trace: ITrace): Set<number> {
  const flagged = (trace.findings ?? []).filter(({ op, severity }) => op >= 0 && severity !== 'note');
  return new Set(flagged.map(({ op }) => rankOfOp(trace, op)));
}

interface IDoing {
  /** Equal for ranks that did the same. */
  readonly key: string;
  readonly ops: number;
}

const NOTHING: IDoing = { key: '', ops: 0 };

/** What each rank did, thread by thread. A number stands for the ops of a thread: two of 32 bits, so that equal ones are no accident. */
function doingsOf(trace: ITrace): Map<number, IDoing> {
  const { ops, threads } = trace;
  const roles = deviceRoles(trace);
  const count = new Uint32Array(threads.length);
  const one = new Int32Array(threads.length);
  const other = new Int32Array(threads.length);
  for (let op = 0; op < ops.length; op++) {
    const thread = ops.thread[op];
    const rank = thread < 0 ? undefined : roles.get(threads.rank[thread]);
    if (rank) {
      const role = ops.device[op] < 0 ? -1 : rank[ops.device[op]];
      const word = Math.imul(ops.name[op], 4096) + role * 2 + (ops.duration[op] < 0 ? 1 : 0);
      count[thread]++;
      one[thread] = Math.imul(one[thread] ^ word, 0x01000193);
      other[thread] = Math.imul(other[thread], 31) + Math.imul(word ^ (word >>> 7), 0x85ebca6b);
    }
  }
  const doings = new Map<number, IDoing>();
  threads.rank.forEach((rank, thread) => {
    if (count[thread] > 0 && rank >= 0) {
      const { key, ops: before } = doings.get(rank) ?? { key: '', ops: 0 };
      const mine = `${count[thread]} ${one[thread]} ${other[thread]};`;
      doings.set(rank, { key: key + mine, ops: before + count[thread] });
    }
  });
  return doings;
}

/** By rank and device: 0 where the device is the rank's own, else a number that ranks share. */
function deviceRoles(trace: ITrace): Map<number, Int32Array> {
  const { ops, threads, devices } = trace;
  const counts = new Map<number, Uint32Array>();
  for (const rank of threads.rank) {
    counts.set(rank, new Uint32Array(devices.length));
  }
  for (let op = 0; op < ops.length; op++) {
    const of = counts.get(threads.rank[ops.thread[op]] ?? -1);
    if (of && ops.device[op] >= 0) {
      of[ops.device[op]]++;
    }
  }
  const isShared = Array.from({ length: devices.length }, (_, id) => ['cpu', 'meta'].includes(deviceName(trace, id)));
  const roles = new Map<number, Int32Array>();
  for (const [rank, of] of counts) {
    const own = of.reduce((best, times, id) => (!isShared[id] && times > (of[best] ?? 0) ? id : best), -1);
    roles.set(
      rank,
      Int32Array.from(of, (_, id) => (id === own ? 0 : id + 1))
    );
  }
  return roles;
}

/** `0–2, 5` of 0, 1, 2 and 5. */
export function rankRanges(ranks: readonly number[]): string {
  const runs: Array<[first: number, last: number]> = [];
  for (const rank of ranks) {
    const run = runs.at(-1);
    if (run?.[1] === rank - 1) {
      run[1] = rank;
    } else {
      runs.push([rank, rank]);
    }
  }
  return runs.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(', ');
}
