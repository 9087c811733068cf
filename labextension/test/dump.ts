/**
 * A trace as text, row by row, exactly as tools/trace_dump.py writes it: both languages are tested against the same goldens.
 */
import { columnsOf, isLists, TABLE_NAMES, type IColumn, type TableName, type Values } from '../src/model/columns';
import { isObject, type JsonObject } from '../src/model/findings';
import type { ITrace } from '../src/model/trace';

/** `findings` as the file has them. */
export function dump(trace: ITrace, findings: readonly JsonObject[] | null): string {
  return `${[...lines(trace, findings)].join('\n')}\n`;
}

function* lines(trace: ITrace, findings: readonly JsonObject[] | null): Generator<string> {
  const made = `by ${quoted(trace.producer)} at ${quoted(trace.recorded)}`;
  yield `trace ${quoted(trace.title)} ${made} truncated=${trace.truncated}`;
  yield* trace.notes.map(note => `note ${quoted(note)}`);
  for (const table of TABLE_NAMES) {
    yield `${table} ${trace[table].length}`;
    for (let id = 0; id < trace[table].length; id++) {
      const fields = columnsOf(table).map(([name, column]) => `${name}=${field(trace, table, name, column, id)}`);
      yield `  ${id} ${fields.join(' ')}`;
    }
  }
  yield `findings ${findings?.length ?? 'none'}`;
  yield* (findings ?? []).map((finding, at) => `  ${at} ${json(finding)}`);
}

function field(trace: ITrace, table: TableName, name: string, column: IColumn, id: number): string {
  const values = (trace[table] as unknown as Record<string, Values>)[name];
  if (isLists(values)) {
    return `[${values.flat.subarray(values.offsets[id], values.offsets[id + 1]).join(',')}]`;
  }
  return column.kind === 'text' ? quoted(trace.strings[values[id]]) : String(values[id]);
}

/** JSON's ASCII form, which Python writes by default. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Keys sorted, and a blank after each comma and colon, as Python writes it. */
function json(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(json).join(', ')}]`;
  }
  if (isObject(value)) {
    const keys = Object.keys(value).sort();
    return `{${keys.map(key => `${quoted(key)}: ${json(value[key])}`).join(', ')}}`;
  }
  return typeof value === 'string' ? quoted(value) : JSON.stringify(value);
}
