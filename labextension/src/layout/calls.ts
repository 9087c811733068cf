/**
 * Calls of modules as spans: one row for each depth of each thread, from the first op that the call ran to the end of its last.
 */
import type { ITrace } from '../model/trace';
import { buildTracks, type ITracks } from './tracks';

export interface ICallRow {
  readonly thread: number;
  readonly depth: number;
}

export interface ICallRows {
  readonly rows: readonly ICallRow[];
  readonly rowOf: Int32Array;
  readonly tracks: ITracks;
}

/** Deeper calls are left to the module view: a row that says nothing but a name costs height. */
const MOST_DEPTH = 6;

export function buildCalls(trace: ITrace, start: Float64Array, end: Float64Array): ICallRows {
  const { length, thread } = trace.calls;
  const depth = callDepths(trace);
  const [begins, ends] = callSpans(trace, start, end);
  const ids = new Map<string, number>();
  const rows: ICallRow[] = [];
  const drafted = new Int32Array(length).fill(-1);
  for (let call = 0; call < length; call++) {
    if (depth[call] < MOST_DEPTH && begins[call] >= 0) {
      const key = `${thread[call]} ${depth[call]}`;
      const id = ids.get(key) ?? rows.push({ thread: thread[call], depth: depth[call] }) - 1;
      ids.set(key, id);
      drafted[call] = id;
    }
  }
  const order = rows.map((_, id) => id).sort((a, b) => byThread(rows[a], rows[b]));
  const place = new Int32Array(rows.length);
  order.forEach((id, i) => (place[id] = i));
  const rowOf = drafted.map(id => (id < 0 ? -1 : place[id]));
  return { rows: order.map(id => rows[id]), rowOf, tracks: buildTracks(rowOf, rows.length, begins, ends) };
}

function byThread(a: ICallRow, b: ICallRow): number {
  return a.thread - b.thread || a.depth - b.depth;
}

function callDepths(trace: ITrace): Int32Array {
  const { parent, length } = trace.calls;
  const depth = new Int32Array(length);
  for (let call = 0; call < length; call++) {
    depth[call] = parent[call] < 0 ? 0 : depth[parent[call]] + 1;
  }
  return depth;
}

/** Each call's begin and end; begin -1: it ran no op. */
function callSpans(trace: ITrace, start: Float64Array, end: Float64Array): [Float64Array, Float64Array] {
  const { begin, end: stop, thread, length } = trace.calls;
  const opsOf = buildTracks(trace.ops.thread, trace.threads.length, start, start);
  const begins = new Float64Array(length).fill(-1);
  const ends = new Float64Array(length);
  for (let call = 0; call < length; call++) {
    const low = opsOf.rows[thread[call]] ?? 0;
    const high = opsOf.rows[thread[call] + 1] ?? 0;
    const first = firstAtLeast(opsOf.order, begin[call], low, high);
    const last = firstAtLeast(opsOf.order, stop[call], first, high) - 1;
    if (last >= first) {
      begins[call] = start[opsOf.order[first]];
      ends[call] = end[opsOf.order[last]];
    }
  }
  return [begins, ends];
}

function firstAtLeast(order: Uint32Array, id: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order[middle] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
