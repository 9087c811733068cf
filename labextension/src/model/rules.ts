/**
 * The rules that every trace keeps, so that the views can follow ids unchecked: the mirror of trace/checks.py, in the same words.
 */
import { columnsOf, isLists, TABLE_NAMES, type IColumn, type Ints, type TableName, type Values } from './columns';
import { damaged } from './errors';
import type { IFinding } from './findings';
import type { IExtent } from './packed';
import type { ITrace } from './trace';

/** Throws unless the trace keeps the format's rules. `extents` are those of its columns. */
export function check(trace: ITrace, extents: ReadonlyMap<Ints, IExtent>): void {
  const extent = (values: Ints): IExtent => extents.get(values) ?? NOTHING;
  for (const table of TABLE_NAMES) {
    for (const [name, column] of columnsOf(table)) {
      const values = (trace[table] as unknown as Record<string, Values>)[name];
      checkShape(trace, table, name, values, extent);
      checkReference(trace, `${table}.${name}`, column, extent(isLists(values) ? values.flat : values));
    }
  }
  checkOrder(trace, extent);
  checkCalls(trace);
  for (const [at, finding] of (trace.findings ?? []).entries()) {
    checkFinding(trace, finding, `finding ${at}`);
  }
}

type Extents = (values: Ints) => IExtent;

const NOTHING: IExtent = { low: Infinity, high: -Infinity, falls: false };

function checkShape(trace: ITrace, table: TableName, name: string, values: Values, extent: Extents): void {
  const where = `${table}.${name}`;
  if (isLists(values) && !isRun(values.offsets, values.flat.length, extent)) {
    throw damaged(`the offsets of ${where} do not run from 0 to the ${values.flat.length} values of its flat column`);
  }
  const rows = isLists(values) ? values.offsets.length - 1 : values.length;
  if (rows !== trace[table].length) {
    const first = columnsOf(table)[0][0];
    throw damaged(`${where} has ${rows} rows where ${table}.${first} has ${trace[table].length}`);
  }
}

function isRun(offsets: Ints, end: number, extent: Extents): boolean {
  return offsets.length > 0 && offsets[0] === 0 && offsets[offsets.length - 1] === end && !extent(offsets).falls;
}

function checkReference(trace: ITrace, where: string, column: IColumn, { low, high }: IExtent): void {
  if (column.kind === 'int' || column.kind === 'ints') {
    return;
  }
  const count = column.kind === 'text' ? trace.strings.length : trace[column.table as TableName].length;
  if (low < (column.kind === 'row' ? -1 : 0) || high >= count) {
    throw damaged(`${where} points outside the ${count} rows of ${column.table || 'strings'}`);
  }
}

function checkOrder(trace: ITrace, extent: Extents): void {
  const start = extent(trace.ops.start);
  if (start.low < 0 || start.falls) {
    throw damaged('ops.start is negative or falls');
  }
  if (extent(trace.ops.duration).low < -1) {
    throw damaged('ops.duration is below -1');
  }
  for (const table of ['tensors', 'copies'] as const) {
    if (extent(trace[table].bytes).low < 0) {
      throw damaged(`${table}.bytes is negative`);
    }
  }
}

function checkCalls(trace: ITrace): void {
  const { begin, end, parent, length } = trace.calls;
  if ([trace.calls, trace.autocasts].some(spans => !areSpans(trace, spans))) {
    throw damaged('a call or a region of autocast begins after it ends, or outside the ops');
  }
  for (let i = 0; i < length; i++) {
    if (parent[i] >= i) {
      throw damaged('a call stands before its parent');
    }
    if (parent[i] >= 0 && (begin[i] < begin[parent[i]] || end[i] > end[parent[i]])) {
      throw damaged('a call reaches outside its parent: calls must nest');
    }
  }
}

function areSpans({ ops }: ITrace, { begin, end }: Pick<ITrace['calls'], 'begin' | 'end'>): boolean {
  return begin.every((first, i) => first >= 0 && end[i] >= first && end[i] <= ops.length);
}

function checkFinding(trace: ITrace, finding: IFinding, where: string): void {
  const { site, culprit, lines } = finding;
  const sites = [site, culprit?.born ?? -1, culprit?.moved ?? -1, ...lines.map(line => line.site)];
  if (isOutside(sites, trace.sites.length)) {
    throw damaged(`${where} points to a site that is not there`);
  }
  if (isOutside([finding.op, ...finding.ops], trace.ops.length)) {
    throw damaged(`${where} points to an op that is not there`);
  }
}

function isOutside(ids: readonly number[], count: number): boolean {
  return ids.some(id => !Number.isInteger(id) || id < -1 || id >= count);
}
