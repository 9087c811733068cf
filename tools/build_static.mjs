/**
 * Builds the scripts of the views for pages without our extension: `views.js` in both languages, for a page of its own, and one in each
 * language alone, which html that upgrades itself carries in every output: with the view of memory (`views.en.memory.js`) or, as most
 * traces have nothing to show in it, without. And `live.js`, the view that an anywidget brings along.
 */
import { readFile } from 'node:fs/promises';
import { build, transform } from 'esbuild';

/** For each language the file of its own words, and that of the other's. */
const WORDS = { en: ['english.json', 'chinese.json'], zh: ['chinese.json', 'english.json'] };

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
    onLoad({ filter: /model\/autocasts\.ts$/ }, () => ({ contents: 'export const autocastOfOps = () => [];', loader: 'ts' }));
    onLoad({ filter: /layout\/folds\.ts$/ }, () => ({
      contents: UNFOLDED,
      loader: 'ts',
      resolveDir: 'labextension/src/layout'
    }));
    onLoad({ filter: /paint\/folds\.ts$/ }, () => ({ contents: 'export const paintFolds = () => [];', loader: 'ts' }));
  }
};

/** The texts of a language whose keys some of these sources name: a test holds that each key is named as it is. */
async function textsFor(sources, path) {
  const texts = JSON.parse(await readFile(path, 'utf8'));
  const code = sources.join('\n');
  return Object.fromEntries(Object.entries(texts).filter(([key]) => code.includes(`'${key}'`)));
}

/** The words of the other language become another name of this one's, which are only those that the views say. */
const only = (language, sources) => ({
  name: 'words',
  setup({ onLoad }) {
    const [own, other] = WORDS[language];
    onLoad({ filter: new RegExp(`words/${other}$`) }, () => ({
      contents: `export { default } from './${own}';`,
      loader: 'ts',
      resolveDir: 'labextension/words'
    }));
    onLoad({ filter: new RegExp(`words/${own}$`) }, async ({ path }) => ({
      contents: JSON.stringify(await textsFor(sources, path)),
      loader: 'json'
    }));
  }
});

const { metafile } = await build({ ...entry, outfile: 'src/devtrace/static/views.js', plugins: [styles] });
const code = Object.keys(metafile.inputs).filter(path => path.endsWith('.ts'));
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
