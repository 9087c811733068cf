/**
 * A trace without its ops: findings, ledger, sites and sources, which is all that the sidebar and the stripes need. Reading it takes a
 * millisecond where the whole may take a hundred.
 */
import { columnsOf, TABLE_NAMES } from './columns';
import { isObject, type JsonObject } from './findings';
import { ColumnReader } from './packed';
import { readTrace } from './read';
import type { ITrace } from './trace';
import type { Language } from './words/catalogue';

const KEPT = new Set(['devices', 'sites', 'sources', 'ledger']);

export interface IOutline {
  readonly outline: ITrace;
  readonly ops: number;
  readonly seconds: number;
}

/** Reads an output's data; throws as `readTrace` does. */
export async function readOutline(data: unknown, otherwise: Language = 'en'): Promise<IOutline> {
  if (!isObject(data) || !isObject(data['ops'])) {
    return { outline: await readTrace(data, otherwise), ops: 0, seconds: 0 };
  }
  const { ops } = data;
  const findings = findingsWithoutOps(data['findings']);
  const outline = await readTrace({ ...data, ...withoutOps(), findings }, otherwise);
  const reader = new ColumnReader();
  const start = await reader.read('ops.start', ops['start'], true);
  const duration = await reader.read('ops.duration', ops['duration'], true);
  let end = 0;
  for (let i = 0; i < start.length; i++) {
    end = Math.max(end, start[i] + Math.max(duration[i] ?? 0, 0));
  }
  const seconds = start.length === 0 ? 0 : (end - start[0]) / 1e9;
  return { outline, ops: start.length + outline.truncated, seconds };
}

function withoutOps(): JsonObject {
  const empty = TABLE_NAMES.filter(name => !KEPT.has(name)).map(name => [
    name,
    Object.fromEntries(
      columnsOf(name).map(([column, { kind }]) => [
        column,
        kind === 'ints' || kind === 'rows' ? { offsets: [0], flat: [] } : []
      ])
    )
  ]);
  return Object.fromEntries(empty) as JsonObject;
}

function findingsWithoutOps(findings: unknown): unknown {
  return Array.isArray(findings)
    ? findings.map((finding: unknown) => (isObject(finding) ? { ...finding, op: -1, ops: [] } : finding))
    : findings;
}
