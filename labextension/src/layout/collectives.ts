/**
 * Collectives in which several ranks took part: the n-th of a name in each rank is the same, from when the first rank came to when the
 * last one left.
 */
import type { ITrace } from '../model/trace';
import { rankOfOp } from './ranks';
import { buildTracks, type ITracks } from './tracks';

export interface ICollectives {
  /** The ops of each collective, one a rank, in the order in which the ranks came. */
  readonly ops: ReadonlyArray<readonly number[]>;
  /** One row, a span for each collective. */
  readonly tracks: ITracks;
}

const NAMESPACES = ['c10d.', '_c10d_functional.'] as const;
const OF_TWO = /^(send|recv|isend|irecv)/;
const NO_WORK = 'wait_tensor';

export function buildCollectives(trace: ITrace, start: Float64Array, end: Float64Array): ICollectives {
  const ops = [...gathered(trace).values()].flat().filter(each => each.length > 1);
  ops.sort((a, b) => start[a[0]] - start[b[0]]);
  const begins = ops.map(each => start[each[0]]);
  const ends = ops.map(each => Math.max(...each.map(op => end[op])));
  return { ops, tracks: buildTracks(new Int32Array(ops.length), 1, begins, ends) };
}

/** By name, the ops of the first, the second and so on. */
function gathered(trace: ITrace): Map<number, number[][]> {
  const { ops, strings } = trace;
  const isCollective = strings.map(isCollectiveName);
  const byName = new Map<number, number[][]>();
  if (new Set(trace.threads.rank).size < 2 || !isCollective.includes(true)) {
    return byName;
  }
  const seen = new Map<number, number>();
  for (let op = 0; op < ops.length; op++) {
    const name = ops.name[op];
    if (isCollective[name]) {
      const key = rankOfOp(trace, op) * strings.length + name;
      const number = seen.get(key) ?? 0;
      seen.set(key, number + 1);
      const same = byName.get(name) ?? [];
      byName.set(name, same);
      (same[number] ??= []).push(op);
    }
  }
  return byName;
}

function isCollectiveName(name: string): boolean {
  const short = (name.split('.')[1] ?? '').replace(/_+$/, '');
  return NAMESPACES.some(each => name.startsWith(each)) && !OF_TWO.test(short) && short !== NO_WORK;
}
