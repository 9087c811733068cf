/**
 * The tables and columns of a trace: the mirror of trace/columns.py, which explains each column. A test compares the two.
 */

export interface IColumn {
  readonly kind: 'int' | 'text' | 'row' | 'ints' | 'rows';
  readonly table: string;
  readonly wide: boolean;
}

const int = { kind: 'int', table: '', wide: false } as const;
const wide = { kind: 'int', table: '', wide: true } as const;
const text = { kind: 'text', table: '', wide: false } as const;
const ints = { kind: 'ints', table: '', wide: false } as const;
const row = (table: string) => ({ kind: 'row', table, wide: false }) as const;
const rows = (table: string) => ({ kind: 'rows', table, wide: false }) as const;

export const TABLES = {
  devices: { name: text, simulated: int },
  sites: {
    file: text,
    line: int,
    column: int,
    end_line: int,
    end_column: int,
    function: text,
    text: text,
    cell: int,
    cell_id: text,
    package: text,
    caller: row('sites')
  },
  sources: { file: text, text: text, line: int, cell: int, cell_id: text },
  shapes: { dims: ints },
  modules: { path: text, type: text, parent: row('modules'), site: row('sites'), op: int, ran: int },
  calls: {
    module: row('modules'),
    parent: row('calls'),
    begin: int,
    end: int,
    thread: row('threads'),
    training: int
  },
  tensors: {
    device: row('devices'),
    dtype: text,
    shape: row('shapes'),
    bytes: wide,
    producer: row('ops'),
    site: row('sites'),
    role: text,
    name: text,
    source: row('tensors')
  },
  threads: { name: text, rank: int },
  ops: {
    name: text,
    start: wide,
    duration: wide,
    device: row('devices'),
    kind: text,
    phase: text,
    call: row('calls'),
    site: row('sites'),
    thread: row('threads'),
    inputs: rows('tensors'),
    outputs: rows('tensors'),
    forward: row('ops'),
    grad: int
  },
  copies: {
    op: row('ops'),
    from: row('devices'),
    to: row('devices'),
    bytes: wide,
    pinned: int,
    non_blocking: int,
    source: row('tensors')
  },
  moves: { module: row('modules'), site: row('sites'), op: int, device: row('devices'), tensors: int },
  errors: { op: row('ops'), type: text, message: text },
  ledger: { site: row('sites'), ops: ints, h2d: int, d2h: int, d2d: int, syncs: int, cpu_compute: int, bytes: wide },
  autocasts: {
    thread: row('threads'),
    begin: int,
    end: int,
    device: text,
    dtype: text,
    enabled: int,
    site: row('sites'),
    left: row('sites')
  }
} as const satisfies Record<string, Record<string, IColumn>>;

export type TableName = keyof typeof TABLES;

export const TABLE_NAMES = Object.keys(TABLES) as TableName[];

/** Tables that a file leaves out where they have no rows, and columns that older files lack. */
export const OPTIONAL: readonly string[] = ['autocasts', 'copies.source'];

export type Ints = Int32Array | Float64Array;

/** A column of lists: row i holds flat[offsets[i]] up to flat[offsets[i + 1]]. */
export interface ILists {
  readonly offsets: Ints;
  readonly flat: Ints;
}

export type Values = Ints | ILists;

type ValuesOf<C extends IColumn> = C['kind'] extends 'ints' | 'rows'
  ? ILists
  : C['wide'] extends true
    ? Float64Array
    : Int32Array;

/** The columns of one table by name, and how many rows they have. */
export type Table<T extends TableName> = {
  readonly [C in keyof (typeof TABLES)[T]]: (typeof TABLES)[T][C] extends IColumn
    ? ValuesOf<(typeof TABLES)[T][C]>
    : never;
} & { readonly length: number };

export type Tables = { readonly [T in TableName]: Table<T> };

/** A table's columns when which table it is does not matter. */
export function columnsOf(table: TableName): ReadonlyArray<readonly [string, IColumn]> {
  return Object.entries(TABLES[table]);
}

/** A table of so many rows in which nothing is known: no row of another table, no lists. */
export function blankTable<T extends TableName>(name: T, length = 0): Table<T> {
  const columns = columnsOf(name).map(([column, { kind, wide }]) => {
    const isList = kind === 'ints' || kind === 'rows';
    const values = new (wide ? Float64Array : Int32Array)(isList ? 0 : length).fill(kind === 'row' ? -1 : 0);
    return [column, isList ? { offsets: new Float64Array(length + 1), flat: values } : values];
  });
  return { ...Object.fromEntries(columns), length } as Table<T>;
}

export function isLists(values: Values): values is ILists {
  return 'flat' in values;
}
