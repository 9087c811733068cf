/**
 * What every trace keeps, so that the views follow ids without looking: the mirror of `rules.py`, in the same words.
 */
import { columnsOf, isLists, TABLE_NAMES, type IColumn, type Ints, type TableName, type Values } from './columns';
import { damaged } from './errors';
import type { IFinding } from './findings';
import type { ITrace } from './trace';

/** Throws unless the trace keeps the format's rules. */
export function check(trace: ITrace): void {
  for (const table of TABLE_NAMES) {
    for (const [name, column] of columnsOf(table)) {
      checkShape(trace, table, name);
      checkReference(trace, table, name, column);
    }
  }
  checkOrder(trace);
  checkCalls(trace);
  for (const [at, finding] of (trace.findings ?? []).entries()) {
    checkFinding(trace, finding, `finding ${at}`);
  }
}

function valuesOf(trace: ITrace, table: TableName, name: string): Values {
  return (trace[table] as unknown as Record<string, Values>)[name];
}

function checkShape(trace: ITrace, table: TableName, name: string): void {
  const values = valuesOf(trace, table, name);
  const where = `${table}.${name}`;
  if (isLists(values) && !isRun(values.offsets, values.flat.length)) {
    throw damaged(`the offsets of ${where} do not run from 0 to the ${values.flat.length} values of its flat column`);
  }
  const rows = isLists(values) ? values.offsets.length - 1 : values.length;
  if (rows !== trace[table].length) {
    const first = columnsOf(table)[0][0];
    throw damaged(`${where} has ${rows} rows where ${table}.${first} has ${trace[table].length}`);
  }
}

function isRun(offsets: Ints, end: number): boolean {
  return offsets.length > 0 && offsets[0] === 0 && offsets[offsets.length - 1] === end && !falls(offsets);
}

function falls(values: Ints): boolean {
  for (let i = 1; i < values.length; i++) {
    if (values[i] < values[i - 1]) {
      return true;
    }
  }
  return false;
}

function lowest(values: Ints): number {
  let low = Infinity;
  for (const value of values) {
    low = value < low ? value : low;
  }
  return low;
}

function isOutside(values: Ints, low: number, count: number): boolean {
  for (const value of values) {
    if (value < low || value >= count) {
      return true;
    }
  }
  return false;
}

function checkReference(trace: ITrace, table: TableName, name: string, column: IColumn): void {
  if (column.kind === 'int' || column.kind === 'ints') {
    return;
  }
  const values = valuesOf(trace, table, name);
  const count = column.kind === 'text' ? trace.strings.length : trace[column.table as TableName].length;
  if (isOutside(isLists(values) ? values.flat : values, column.kind === 'row' ? -1 : 0, count)) {
    throw damaged(`${table}.${name} points outside the ${count} rows of ${column.table || 'strings'}`);
  }
}

function checkOrder(trace: ITrace): void {
  const { start, duration } = trace.ops;
  if (start[0] < 0 || falls(start)) {
    throw damaged('ops.start is negative or falls');
  }
  if (lowest(duration) < -1) {
    throw damaged('ops.duration is below -1');
  }
  for (const table of ['tensors', 'copies'] as const) {
    if (lowest(trace[table].bytes) < 0) {
      throw damaged(`${table}.bytes is negative`);
    }
  }
}

function checkCalls(trace: ITrace): void {
  const { begin, end, parent, length } = trace.calls;
  for (let i = 0; i < length; i++) {
    if (begin[i] < 0 || end[i] < begin[i] || end[i] > trace.ops.length) {
      throw damaged('a call begins after it ends, or outside the ops');
    }
    if (parent[i] >= i) {
      throw damaged('a call stands before its parent');
    }
    if (parent[i] >= 0 && (begin[i] < begin[parent[i]] || end[i] > end[parent[i]])) {
      throw damaged('a call reaches outside its parent: calls must nest');
    }
  }
}

function checkFinding(trace: ITrace, finding: IFinding, where: string): void {
  const sites = [finding.site, ...(finding.culprit?.chain ?? [])];
  sites.push(finding.culprit?.born ?? -1, finding.culprit?.moved ?? -1);
  if (isOutside(Float64Array.from(sites), -1, trace.sites.length)) {
    throw damaged(`${where} points to a site that is not there`);
  }
  if (isOutside(Float64Array.from([finding.op, ...finding.ops]), -1, trace.ops.length)) {
    throw damaged(`${where} points to an op that is not there`);
  }
}
