/**
 * A report on an error of a cell that nobody traced: the bundle names the cell, so that its reader can have it traced.
 */
import { isObject } from './findings';

/** The id of the cell, '' where the kernel did not know it; null for the report of a trace. */
export function untracedCell(data: unknown): string | null {
  const mark = isObject(data) ? data['untraced'] : undefined;
  const cell = isObject(mark) ? mark['cell'] : '';
  return mark === undefined ? null : typeof cell === 'string' ? cell : '';
}
