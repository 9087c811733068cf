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
  let text = 'something unreadable';
  try {
    text = (JSON.stringify(value) as string | undefined) ?? 'nothing';
  } catch {
    // A value that refuses to become JSON is described by the default above.
  }
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}
