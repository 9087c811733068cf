/**
 * Writes build/json.d.ts: the types of the JSON files that the page reads, down to each text, so that tsc knows the keys of sentences,
 * their parameters, and the fields of messages. TypeScript by itself reads every text of a JSON file as `string`.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';

const FILES = [
  'labextension/words/english.json',
  'labextension/words/chinese.json',
  'src/devtrace/notebook/panel/messages.json',
  'src/devtrace/report/palette.json',
  'src/devtrace/drawing/curves_palette.json'
];

/** A JSON value is a type as it stands: `{"state": "running|left"}`. */
async function declared(path) {
  const json = await readFile(path, 'utf8');
  return `declare module '*/${path.split('/').at(-1)}' {\n  const content: ${json.trim()};\n  export default content;\n}\n`;
}

await mkdir('build', { recursive: true });
await writeFile('build/json.d.ts', (await Promise.all(FILES.map(declared))).join('\n'));
