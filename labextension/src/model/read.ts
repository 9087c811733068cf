/**
 * From what a notebook or a file holds to a trace whose rules are checked: the mirror of `format.decode`.
 */
import { columnsOf, isLists, OPTIONAL, TABLE_NAMES, type Table, type TableName, type Values } from './columns';
import { damaged, FormatError, short } from './errors';
import { isObject, readFinding, type IFinding, type JsonObject } from './findings';
import { ColumnReader } from './packed';
import { check } from './rules';
import { listed, type ITrace } from './trace';
import { languageOf, sentence, type Language } from './words/catalogue';

const VERSION = 1;

/**
 * The trace in a bundle's object or a file's text. Anything else throws a FormatError with one sentence. A trace that does not say in
 * which language it was made is shown in `otherwise`.
 */
export async function readTrace(data: unknown, otherwise: Language = 'en'): Promise<ITrace> {
  const object = upgrade(typeof data === 'string' ? parse(data) : data);
  const reader = new ColumnReader();
  const tables = await Promise.all(TABLE_NAMES.map(name => readTable(reader, name, object[name])));
  const trace: ITrace = {
    ...(Object.fromEntries(TABLE_NAMES.map((name, i) => [name, tables[i]])) as unknown as ITrace),
    title: readText(object, 'title'),
    recorded: readText(object, 'recorded'),
    producer: readText(object, 'producer'),
    truncated: readCount(object, 'truncated'),
    notes: readTexts(object, 'notes'),
    allClear: object['all_clear'] === true,
    closing: readText(object, 'closing'),
    memory: Array.isArray(object['memory']) ? object['memory'] : [],
    strings: readTexts(object, 'strings'),
    findings: readFindings(object['findings']),
    language: languageOf(readText(object, 'language')) ?? otherwise
  };
  check(trace, reader.extents);
  const { copies } = trace;
  if (isObject(object['copies']) && !('source' in object['copies'])) {
    // Each copy was taken to carry the first input of its op.
    copies.source.set(copies.op.map(op => [...(op < 0 ? [] : listed(trace.ops.inputs, op)), -1][0]));
  }
  return trace;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new FormatError('trace-foreign', language => {
      const found = sentence(language, 'error.not-json', { reason });
      return sentence(language, 'error.trace-foreign', { found, expected: sentence(language, 'error.a-trace') });
    });
  }
}

function upgrade(data: unknown): JsonObject {
  if (!isObject(data) || data['format'] !== 'devtrace') {
    const found = short(data);
    throw new FormatError('trace-foreign', language =>
      sentence(language, 'error.trace-foreign', { found, expected: sentence(language, 'error.an-object') })
    );
  }
  const version = data['version'];
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 1) {
    throw damaged(`the version is ${short(version)}`);
  }
  if (version > VERSION) {
    throw new FormatError('trace-newer', language =>
      sentence(language, 'error.trace-newer', { found: version, expected: VERSION })
    );
  }
  return data;
}

async function readTable<T extends TableName>(reader: ColumnReader, name: T, data: unknown): Promise<Table<T>> {
  const columns = columnsOf(name);
  if (data === undefined && OPTIONAL.includes(name)) {
    return readTable(reader, name, Object.fromEntries(columns.map(([column]) => [column, []])));
  }
  if (!isObject(data)) {
    throw damaged(`the table ${name} is missing`);
  }
  const known = columns.filter(([column]) => column in data || !OPTIONAL.includes(`${name}.${column}`));
  const values = await Promise.all(known.map(([column]) => readValues(reader, name, column, data[column])));
  const length = isLists(values[0]) ? values[0].offsets.length - 1 : values[0].length;
  const unknown = new Int32Array(length).fill(-1);
  return {
    ...Object.fromEntries(columns.map(([column]) => [column, unknown])),
    ...Object.fromEntries(known.map(([column], i) => [column, values[i]])),
    length
  } as unknown as Table<T>;
}

async function readValues(reader: ColumnReader, table: TableName, name: string, data: unknown): Promise<Values> {
  const column = new Map(columnsOf(table)).get(name);
  const where = `${table}.${name}`;
  if (column?.kind !== 'ints' && column?.kind !== 'rows') {
    return reader.read(where, data, column?.wide ?? false);
  }
  if (!isObject(data)) {
    throw damaged(`${where} is ${short(data)}, expected offsets and flat`);
  }
  const offsets = await reader.read(`${where}.offsets`, data['offsets'], true);
  return { offsets, flat: await reader.read(`${where}.flat`, data['flat'], column.wide) };
}

function readFindings(value: unknown): readonly IFinding[] | null {
  if (value === undefined || value === null) {
    return null;
  }
  if (!Array.isArray(value) || !value.every(isObject)) {
    throw damaged('findings is not a list of objects');
  }
  return value.map(readFinding);
}

function readText(object: JsonObject, key: string): string {
  const value = object[key] ?? '';
  if (typeof value !== 'string') {
    throw damaged(`${key} is ${short(value)}, expected text`);
  }
  return value;
}

function readCount(object: JsonObject, key: string): number {
  const value = object[key] ?? 0;
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    throw damaged(`${key} is ${short(value)}, expected a count`);
  }
  return value as number;
}

function readTexts(object: JsonObject, key: string): readonly string[] {
  const value = object[key] ?? [];
  if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) {
    throw damaged(`${key} is not a list of texts`);
  }
  return value;
}
