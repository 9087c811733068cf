/**
 * Python source cut into pieces with a colour each. Not a parser: names stay as they are, and what it does not know is plain.
 */

export type TokenKind = 'plain' | 'keyword' | 'quoted' | 'comment' | 'digits' | 'magic';

export interface IToken {
  readonly kind: TokenKind;
  readonly begin: number;
  readonly end: number;
}

const KEYWORDS = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global if import in is ' +
    'lambda match nonlocal not or pass raise return try while with yield'
  ).split(' ')
);

const TOKEN = /(#.*)|([rRbBuUfFtT]{0,2})('''|"""|'|")|(\b\d[\w.]*)|([^\W\d]\w*)/gu;

/** The tokens of each line. A text of several lines goes on from line to line. */
export function tokenize(lines: readonly string[]): IToken[][] {
  let open = '';
  return lines.map(line => {
    const tokens: IToken[] = [];
    let at = 0;
    if (open === '' && /^\s*%/.test(line)) {
      return [{ kind: 'magic', begin: 0, end: line.length }];
    }
    if (open !== '') {
      [at, open] = endOfText(line, 0, open);
      tokens.push({ kind: 'quoted', begin: 0, end: at });
    }
    TOKEN.lastIndex = at;
    for (let match = TOKEN.exec(line); match; match = TOKEN.exec(line)) {
      const begin = match.index;
      let end = TOKEN.lastIndex;
      if (match[3]) {
        [end, open] = endOfText(line, end, match[3]);
        TOKEN.lastIndex = end;
      }
      const kind = kindOf(match);
      if (kind !== 'plain') {
        tokens.push({ kind, begin, end });
      }
    }
    return tokens;
  });
}

function kindOf([, comment, , quote, number, word]: RegExpExecArray): TokenKind {
  if (comment) {
    return 'comment';
  }
  if (quote) {
    return 'quoted';
  }
  return number ? 'digits' : KEYWORDS.has(word) ? 'keyword' : 'plain';
}

/** Find the end of a text that began with `quote`, and the quote that is still open then. */
function endOfText(line: string, from: number, quote: string): [end: number, open: string] {
  for (let at = from; at < line.length; at++) {
    if (line[at] === '\\') {
      at++;
    } else if (line.startsWith(quote, at)) {
      return [at + quote.length, ''];
    }
  }
  return [line.length, quote.length === 3 ? quote : ''];
}

const COMPOUND = /^(async\s+)?(for|while|with|if|elif|else|try|except|finally|def|class|match|case)\b/;

/** The end of a statement's header where lines of its body follow, the colon included; 0 for one that has no body below it. */
export function headerEnd(code: string): number {
  if (!COMPOUND.test(code)) {
    return 0;
  }
  let depth = 0;
  let at = 0;
  for (const line of code.split('\n')) {
    for (let i = 0; i < line.length && line[i] !== '#'; i++) {
      const quote = /^('''|"""|'|")/.exec(line.slice(i, i + 3))?.[1];
      if (quote !== undefined) {
        i = endOfText(line, i + quote.length, quote)[0] - 1;
      } else if ('([{'.includes(line[i])) {
        depth++;
      } else if (')]}'.includes(line[i])) {
        depth--;
      } else if (line[i] === ':' && depth === 0) {
        return code.includes('\n', at + i) ? at + i + 1 : 0;
      }
    }
    at += line.length + 1;
  }
  return 0;
}
