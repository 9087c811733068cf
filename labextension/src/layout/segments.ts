/**
 * A line of source cut where a token or a mark begins or ends.
 */
import type { IToken, TokenKind } from './python';
import type { IMark } from './source';

interface ISegment {
  readonly text: string;
  /** Null for plain code. */
  readonly token: TokenKind | null;
  /** Null outside of all marks. */
  readonly mark: IMark['kind'] | null;
}

/** `text` may be the beginning of the line alone; of marks that overlap the first counts. */
export function segmentsOf(text: string, tokens: readonly IToken[], marks: readonly IMark[]): ISegment[] {
  const cuts = new Set([0, text.length]);
  [...tokens, ...marks].forEach(({ begin, end }) => {
    cuts.add(Math.min(begin, text.length)).add(Math.min(end, text.length));
  });
  const columns = [...cuts].sort((a, b) => a - b);
  return columns.slice(0, -1).map((from, i) => {
    const isHere = ({ begin, end }: IToken | IMark): boolean => begin <= from && from < end;
    return {
      text: text.slice(from, columns[i + 1]),
      token: tokens.find(isHere)?.kind ?? null,
      mark: marks.find(isHere)?.kind ?? null
    };
  });
}
