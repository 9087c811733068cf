/**
 * Sentences by their key, in a language. A text names its parameters:
 *
 *     {name}             as it is; a whole number has separators between thousands
 *     {count:op|ops}     1 op, 2,000 ops
 *     {count:=is|are}    is, are
 */
import CHINESE from '../../../words/chinese.json';
import ENGLISH from '../../../words/english.json';

export type Language = 'en' | 'zh';
export type Key = keyof typeof ENGLISH;

type Named<Field extends string> = Field extends `${infer Name}:${string}` ? Name : Field;
type Names<Text extends string> = Text extends `${string}{${infer Field}}${infer Rest}`
  ? Named<Field> | Names<Rest>
  : never;
type Values<K extends Key> = Names<(typeof ENGLISH)[K]>;
type Filled<K extends Key> = [Values<K>] extends [never] ? [] : [values: Readonly<Record<Values<K>, string | number>>];

export const TEXTS: Readonly<Record<Language, Readonly<Record<Key, string>>>> = { en: ENGLISH, zh: CHINESE };

const FIELD = /\{(\w+)(?::(=?)([^|}]*)\|([^}]*))?\}/g;

/** The sentence of a key with its parameters filled in. */
export function sentence<K extends Key>(language: Language, key: K, ...[values]: Filled<K>): string {
  return filledIn(TEXTS[language][key], values ?? {});
}

/** A text with its parameters filled in. */
export function filledIn(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(FIELD, (_, name: string, bare?: string, one?: string, many?: string) => {
    const value = values[name];
    const written = typeof value === 'number' ? value.toLocaleString('en-US') : value;
    const noun = (value === 1 ? one : many) ?? '';
    return one === undefined ? written : bare === '=' ? noun : `${written} ${noun}`;
  });
}

/** `a`, `a and b`, `a, b and c` */
export function listed(language: Language, names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2
    ? last
    : sentence(language, 'list.and', { first: joined(language, names.slice(0, -1)), last });
}

/** `a, b, c` */
export function joined(language: Language, items: readonly string[]): string {
  return items.join(sentence(language, 'list.comma'));
}

/** The language of a tag such as `zh-CN`, `zh_Hans` or `en`; null for all others. */
export function languageOf(tag: string): Language | null {
  const [name] = tag.toLowerCase().split(/[-_]/);
  return name === 'en' || name === 'zh' ? name : null;
}
