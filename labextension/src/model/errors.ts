/**
 * Why data is no trace that we read: one sentence of what was found, what was expected and what to do.
 */
export class FormatError extends Error {
  override readonly name = 'FormatError';

  constructor(
    readonly slug: 'trace-foreign' | 'trace-newer' | 'trace-damaged',
    found: string,
    expected: string,
    remedy: string
  ) {
    super(`${slug}: got ${found}; ${expected}; ${remedy}.`);
  }
}

export function damaged(found: string): FormatError {
  return new FormatError(
    'trace-damaged',
    `a trace in which ${found}`,
    "expected one that keeps the format's rules",
    'record it again or open another copy'
  );
}

/** A value from a foreign file, for a message: never long. */
export function short(value: unknown): string {
  const text = asText(value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

function asText(value: unknown): string {
  try {
    const text: unknown = JSON.stringify(value);
    return typeof text === 'string' ? text : typeof value;
  } catch {
    return 'something unreadable';
  }
}
