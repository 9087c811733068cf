/**
 * Builds the scripts of the views for pages without our extension: `views.js` in both languages, for a page of its own, and one in each
 * language alone, which html that upgrades itself carries in every output: with the view of memory (`views.en.memory.js`) or, as most
 * traces have nothing to show in it, without. And `live.js`, the view that an anywidget brings along.
 */
import { readFile } from 'node:fs/promises';
import { build, transform } from 'esbuild';

const WORDS = { en: ['chinese', 'CHINESE', 'english', 'ENGLISH'], zh: ['english', 'ENGLISH', 'chinese', 'CHINESE'] };

const styles = {
  name: 'styles',
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true });
      return { contents: code.trim(), loader: 'text' };
    });
  }
};

const entry = {
  entryPoints: ['labextension/src/view/standalone.ts'],
  bundle: true,
  minify: true,
  format: 'iife',
  mangleProps: /^_[a-z]/,
  metafile: true
};

/** An axis without folds. */
const UNFOLDED = `import { timeTicks } from './units';
  export const foldsOf = () => [], onAxis = (_, time) => time, momentAt = onAxis;
  export const foldedTicks = (_, { begin, end }, most) => timeTicks(begin, end, most);`;

/** The view of memory, and what only it needs. The outputs of notebooks have no room for it, nor for autocast and folds of idle time. */
const MEMORY = /^labextension\/src\/(view|model|layout|paint)\/memory\.ts$/;

const withoutMemory = {
  name: 'without-memory',
  setup({ onLoad }) {
    onLoad({ filter: /view\/memory\.ts$/ }, () => ({ contents: 'export const mountMemory = null;', loader: 'ts' }));
    const nothing = 'export const paintAutocasts = () => {}, autocastOfOps = () => [];';
    onLoad({ filter: /(paint|model)\/autocasts\.ts$/ }, () => ({ contents: nothing, loader: 'ts' }));
    onLoad({ filter: /layout\/folds\.ts$/ }, () => ({
      contents: UNFOLDED,
      loader: 'ts',
      resolveDir: 'labextension/src/layout'
    }));
    onLoad({ filter: /paint\/folds\.ts$/ }, () => ({ contents: 'export const paintFolds = () => [];', loader: 'ts' }));
  }
};

/** The texts of a language whose keys some of these sources name, or a family of (`panel.${name}`): a test holds that each is named so. */
async function textsFor(sources, path) {
  const read = await transform(await readFile(path, 'utf8'), { loader: 'ts' });
  const [texts] = Object.values(await import(`data:text/javascript,${encodeURIComponent(read.code)}`));
  const code = sources.join('\n');
  const families = [...code.matchAll(/`([a-z]+\.[a-z-]*)\$\{[^}]*\}([a-z-]*)`/g)];
  const isNamed = key =>
    code.includes(`'${key}'`) || families.some(([, head, tail]) => key.startsWith(head) && key.endsWith(tail));
  return Object.fromEntries(Object.entries(texts).filter(([key]) => isNamed(key)));
}

/** The catalogue of the other language becomes another name of this one, which has only what the views say. */
const only = (language, sources) => ({
  name: 'words',
  setup({ onLoad }) {
    const [other, itsName, own, name] = WORDS[language];
    onLoad({ filter: new RegExp(`words/${other}\\.ts$`) }, () => ({
      contents: `export { ${name} as ${itsName} } from './${own}';`,
      loader: 'ts'
    }));
    onLoad({ filter: new RegExp(`words/${own}\\.ts$`) }, async ({ path }) => ({
      contents: `export const ${name} = ${JSON.stringify(await textsFor(sources, path))};`,
      loader: 'ts'
    }));
  }
});

const { metafile } = await build({ ...entry, outfile: 'src/devtrace/static/views.js', plugins: [styles] });
const code = Object.keys(metafile.inputs).filter(
  path => path.endsWith('.ts') && !/words\/(english|chinese)/.test(path)
);
const sources = await Promise.all(code.map(path => readFile(path, 'utf8')));
const plain = sources.filter((_, i) => !MEMORY.test(code[i]));
for (const language of Object.keys(WORDS)) {
  const outfile = `src/devtrace/static/views.${language}`;
  await build({ ...entry, outfile: `${outfile}.memory.js`, plugins: [styles, only(language, sources)] });
  await build({ ...entry, outfile: `${outfile}.js`, plugins: [styles, withoutMemory, only(language, plain)] });
}

await build({
  ...entry,
  entryPoints: ['labextension/src/view/live-widget.ts'],
  format: 'esm',
  outfile: 'src/devtrace/static/live.js',
  plugins: [styles]
});
