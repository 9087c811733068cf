/**
 * Traces for tests, told row by row: what a test does not say gets the value that means nothing.
 */
import { columnsOf, TABLE_NAMES, type TableName } from '../src/model/columns';
import type { JsonObject } from '../src/model/findings';
import { readTrace } from '../src/model/read';
import type { ITrace } from '../src/model/trace';

type Row = Readonly<Record<string, number | string | readonly number[]>>;

export type Story = Partial<Readonly<Record<TableName, readonly Row[]>>> & {
  readonly title?: string;
  readonly findings?: readonly JsonObject[];
  readonly left_out?: ReadonlyArray<readonly [number, number]>;
};

/** The trace that a file with these rows holds, read as the page reads it. */
export function traceOf(story: Story): Promise<ITrace> {
  return readTrace(fileOf(story));
}

export function fileOf(story: Story): Record<string, unknown> {
  const strings = new Map<string, number>([['', 0]]);
  const text = (value: string): number => {
    const id = strings.get(value) ?? strings.size;
    strings.set(value, id);
    return id;
  };
  const tables = TABLE_NAMES.map(name => [name, tableOf(name, story[name] ?? DEFAULTS[name] ?? [], text)] as const);
  return {
    format: 'devtrace',
    version: 1,
    producer: 'devtrace test',
    title: story.title ?? '',
    recorded: '',
    truncated: 0,
    notes: [],
    ...Object.fromEntries(tables),
    strings: [...strings.keys()],
    findings: story.findings ?? null,
    left_out: story.left_out ?? []
  };
}

/** Tables that almost every trace has. */
const DEFAULTS: Partial<Record<TableName, readonly Row[]>> = {
  devices: [{ name: 'cpu' }, { name: 'cuda:0', simulated: 1 }, { name: 'cuda:1', simulated: 1 }],
  threads: [{ name: 'MainThread', rank: 0 }]
};

/** The value of a field that a test leaves out. */
const FIELDS: Readonly<Record<string, number | string>> = {
  simulated: 0,
  line: 1,
  duration: 10,
  kind: 'compute',
  phase: 'forward',
  thread: 0,
  ran: 1,
  training: 1,
  bytes: 0,
  rank: 0,
  grad: 1,
  h2d: 0,
  d2h: 0,
  d2d: 0,
  syncs: 0,
  cpu_compute: 0
};

function tableOf(name: TableName, rows: readonly Row[], text: (value: string) => number): Record<string, unknown> {
  const columns = columnsOf(name).map(([column, { kind }]): [string, unknown] => {
    if (kind === 'ints' || kind === 'rows') {
      return [column, listsOf(rows.map(row => (column in row ? (row[column] as readonly number[]) : [])))];
    }
    const nothing = column in FIELDS ? FIELDS[column] : kind === 'text' ? '' : -1;
    const values = rows.map(row => (column in row ? row[column] : nothing));
    return [column, values.map(value => (typeof value === 'string' ? text(value) : value))];
  });
  return Object.fromEntries(columns);
}

function listsOf(lists: ReadonlyArray<readonly number[]>): Record<string, number[]> {
  const offsets = [0];
  for (const list of lists) {
    offsets.push(offsets[offsets.length - 1] + list.length);
  }
  return { offsets, flat: lists.flat() };
}

/** Ops one after the other, `gap` ns apart, each of `took`. */
export function opsInTurn(count: number, fields: (op: number) => Row = () => ({}), took = 10, gap = 5): Row[] {
  return Array.from({ length: count }, (_, op) => ({
    name: `aten.op${op}`,
    start: op * (took + gap),
    duration: took,
    device: 1,
    ...fields(op)
  }));
}

/** Numbers from 0 to 1 that are the same in every run. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
