/**
 * A report on an error of a cell that nobody traced: the bundle names the cell, so that its reader can have it traced.
 */

/** The id of the cell, '' where the kernel did not know it; null for the report of a trace. */
export function untracedCell(data: unknown): string | null {
  const mark = member(data, 'untraced');
  if (mark === undefined) {
    return null;
  }
  const cell = member(mark, 'cell');
  return typeof cell === 'string' ? cell : '';
}

function member(owner: unknown, name: string): unknown {
  return typeof owner === 'object' && owner !== null ? (owner as Readonly<Record<string, unknown>>)[name] : undefined;
}
