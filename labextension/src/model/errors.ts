/**
 * Why data is no trace that we read: one sentence of what was found, what was expected and what to do.
 */
import { sentence, type Language } from './words/catalogue';

export class FormatError extends Error {
  override readonly name = 'FormatError';

  constructor(
    readonly slug: 'trace-foreign' | 'trace-newer' | 'trace-damaged',
    readonly sentenceIn: (language: Language) => string
  ) {
    super(sentenceIn('en'));
  }
}

export function damaged(found: string): FormatError {
  return new FormatError('trace-damaged', language => sentence(language, 'error.trace-damaged', { found }));
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
