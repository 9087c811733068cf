/**
 * Calls of modules as spans: one row for each depth of each thread, from the first op that the call ran to the end of its last.
 */
import { grouped } from '../model/groups';
import type { ITrace } from '../model/trace';
import { buildTracks, search, type ITracks } from './tracks';

interface ICallRow {
  readonly thread: number;
  readonly depth: number;
}

export interface ICallRows {
  readonly rows: readonly ICallRow[];
  readonly tracks: ITracks;
}

/** Deeper calls are left to the module view: a row costs height and says no more than a name. */
const MOST_DEPTH = 6;

export function buildCalls(trace: ITrace, start: Float64Array, end: Float64Array): ICallRows {
  const { length, thread } = trace.calls;
  const depth = callDepths(trace);
  const [begins, ends] = callSpans(trace, start, end);
  const ids = new Map<number, number>();
  const rows: ICallRow[] = [];
  const drafted = new Int32Array(length).fill(-1);
  for (let call = 0; call < length; call++) {
    if (depth[call] < MOST_DEPTH && begins[call] >= 0) {
      const key = thread[call] * MOST_DEPTH + depth[call];
      const id = ids.get(key) ?? rows.push({ thread: thread[call], depth: depth[call] }) - 1;
      ids.set(key, id);
      drafted[call] = id;
    }
  }
  const order = rows.map((_, id) => id).sort((a, b) => byThread(rows[a], rows[b]));
  const rank = new Int32Array(rows.length);
  order.forEach((id, i) => (rank[id] = i));
  const rowOf = drafted.map(id => (id < 0 ? -1 : rank[id]));
  return { rows: order.map(id => rows[id]), tracks: buildTracks(rowOf, rows.length, begins, ends) };
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
  const opsOf = opsByThread(trace);
  const begins = new Float64Array(length).fill(-1);
  const ends = new Float64Array(length);
  for (let call = 0; call < length; call++) {
    const ops = opsOf(thread[call]);
    const first = ops ? search(ops, begin[call], 0, ops.length) : begin[call];
    const next = ops ? search(ops, stop[call], first, ops.length) : stop[call];
    if (next > first) {
      begins[call] = start[ops ? ops[first] : first];
      ends[call] = end[ops ? ops[next - 1] : next - 1];
    }
  }
  return [begins, ends];
}

/** The ids of a thread's ops; null where all ops are of one thread. */
function opsByThread(trace: ITrace): (thread: number) => Float64Array | null {
  const { thread } = trace.ops;
  if (thread.every(id => id === thread[0])) {
    return id => (id === thread[0] ? null : NO_OPS);
  }
  const byThread = grouped(thread.keys(), op => thread[op]);
  const packed = new Map([...byThread].map(([id, ops]) => [id, Float64Array.from(ops)]));
  return id => packed.get(id) ?? NO_OPS;
}

const NO_OPS = new Float64Array();
