import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { filledIn, joined, languageOf, listed, sentence, TEXTS, type Key } from '../src/model/words/catalogue';

const KEYS = Object.keys(TEXTS.en) as Key[];
const SOURCES = 'labextension/src';
/** Names and terms that Chinese readers know in English. */
const TERMS = new Set(
  'CPU GPU Home Enter Devtrace devtrace PyTorch Python JupyterLab In trace foreign newer damaged forward backward optimizer format JSON save'.split(
    ' '
  )
);
const RETIRED =
  /what it meets|it is none|to mend|\bmend|\btold\b|by itself|goes on|in all\b|worked out|the host|passes it by|see it/i;

function parameters(text: string): string[] {
  return [...text.matchAll(/\{(\w+)/g)].map(([, name]) => name).sort();
}

test('both languages have the same sentences with the same parameters', () => {
  assert.deepEqual(Object.keys(TEXTS.zh), KEYS);
  const different = KEYS.filter(key => {
    const [english, chinese] = [TEXTS.en[key], TEXTS.zh[key]].map(text => new Set(parameters(text)));
    // Chinese has no plural: where a count only chooses between forms, it may be left out.
    const [missing, more] = [
      [...english].filter(name => !chinese.has(name)),
      [...chinese].filter(name => !english.has(name))
    ];
    return more.length > 0 || missing.some(name => name !== 'count');
  });
  assert.deepEqual(different, []);
});

test('no sentence has a retired phrase, and none is longer than 30 words', () => {
  assert.deepEqual(
    KEYS.filter(key => RETIRED.test(TEXTS.en[key])),
    []
  );
  const sentences = KEYS.flatMap(key => TEXTS.en[key].split(/[.;:] /));
  assert.deepEqual(
    sentences.filter(text => text.split(' ').length > 30),
    []
  );
});

test('a sentence in Chinese has no English but code and names', () => {
  const found = KEYS.flatMap(key => {
    const plain = TEXTS.zh[key].replace(
      /\{[^}]*\}|`[^`]*`|%\w+|pip install -U devtrace|load_ext|\.to\(\)|"[^"]*"/g,
      ' '
    );
    return (plain.match(/[A-Za-z]{2,}/g) ?? []).filter(word => !TERMS.has(word) && !/^(cpu|pip|install)$/.test(word));
  });
  assert.deepEqual(found, []);
});

test('every sentence is asked for by a key that a search finds', () => {
  const code = files(SOURCES)
    .map(path => readFileSync(path, 'utf8'))
    .join('\n');
  assert.deepEqual(
    KEYS.filter(key => !code.includes(`'${key}'`)),
    []
  );
});

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry =>
    entry.isDirectory()
      ? files(`${folder}/${entry.name}`)
      : entry.name.endsWith('.ts')
        ? [`${folder}/${entry.name}`]
        : []
  );
}

test('a parameter is written as its format says', () => {
  assert.equal(sentence('en', 'stripe.h2d', { count: 1 }), '1 copy to a device');
  assert.equal(sentence('en', 'stripe.h2d', { count: 2000 }), '2,000 copies to a device');
  assert.equal(sentence('zh', 'stripe.h2d', { count: 2000 }), '2,000 次复制到设备');
  assert.equal(sentence('en', 'repair.run', { names: 'a and b', count: 2 }), 'a and b have the fix: run them again.');
  assert.equal(filledIn('{a} {a} {b}', { a: '{b}', b: '$&' }), '{b} {b} $&');
});

test('names are listed as a reader would', () => {
  assert.deepEqual(
    [[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map(names => listed('en', names)),
    ['', 'a', 'a and b', 'a, b and c']
  );
  assert.equal(listed('zh', ['a', 'b', 'c']), 'a、b和 c');
  assert.equal(joined('zh', ['a', 'b']), 'a、b');
});

test('a language is known by its tag', () => {
  assert.deepEqual(['zh-CN', 'zh_Hans_CN', 'ZH', 'en', 'en-GB', 'fr', '', 'zhx'].map(languageOf), [
    'zh',
    'zh',
    'zh',
    'en',
    'en',
    null,
    null,
    null
  ]);
});

const LOCALE = 'src/devtrace/words/locale/zh_CN/LC_MESSAGES/devtrace.json';

test('the bundle for JupyterLab translates each command and each setting, and nothing else', () => {
  const bundle = JSON.parse(readFileSync(LOCALE, 'utf8')) as Record<string, unknown>;
  const commands = readFileSync(`${SOURCES}/jupyter/commands.ts`, 'utf8');
  const asked = [...commands.matchAll(/trans\.__\('([^']+)'\)/g)].map(([, text]) => text);
  const schema: unknown = JSON.parse(readFileSync('labextension/schema/panel.json', 'utf8'));
  const known = Object.keys(bundle).filter(key => key !== '');
  assert.deepEqual(new Set(known), new Set([...asked, ...schemaTexts(schema, 'schema')]));
  const texts = known.map(key => (bundle[key] as string[])[0]);
  assert.deepEqual(
    texts.filter(text => !/[\u4e00-\u9fff]/.test(text)),
    ['Devtrace']
  );
});

function schemaTexts(schema: unknown, context: string): string[] {
  if (typeof schema !== 'object' || schema === null) {
    return [];
  }
  return Object.entries(schema).flatMap(([name, value]: [string, unknown]) =>
    typeof value !== 'string'
      ? schemaTexts(value, 'settings')
      : name === 'title' || name === 'description'
        ? [`${context}\u0004${value}`]
        : []
  );
}
