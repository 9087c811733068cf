/**
 * In a language of which no letter is Latin, what a view says in Latin letters is either of the trace or comes from no catalogue.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { opFacts, opSentence } from '../src/layout/describe';
import { plainText } from '../src/layout/finding-text';
import type { ITrace } from '../src/model/trace';
import { LiveOps } from '../src/model/live';
import { readTrace } from '../src/model/read';
import { repairsOf } from '../src/model/repairs';
import { NOWHERE, type ISidebar } from '../src/model/sidebar';
import { TEXTS, type Key } from '../src/model/words/catalogue';
import { mountLive } from '../src/view/live';
import { showTrace } from '../src/view/page';
import { mountFindings } from '../src/view/findings';
import { mountReport } from '../src/view/report';
import { mountLines } from '../src/view/lines';
import { mountModules } from '../src/view/modules';
import { mountOps } from '../src/view/ops';
import { Selection } from '../src/view/selection';
import { mountSidebar } from '../src/view/sidebar/sidebar';
import { stripeCard } from '../src/view/stripe';
import { NO_ACTIONS, openPage, wordsIn } from './page';
import { fileOf, opsInTurn } from './traces';

const CHINESE = { ...TEXTS.zh };
const LETTERS = /[A-Za-z]/g;

/** Each letter of a text outside of its parameters becomes another; both forms of a noun do. */
function pseudo(text: string): string {
  const changed = (part: string): string => part.replace(LETTERS, 'Ж');
  return text.replace(/\{(\w+)(:=?)?([^}]*)\}|[^{]+/g, (all, name?: string, colon = '', forms = '') =>
    name === undefined ? changed(all) : `{${name}${String(colon)}${changed(String(forms))}}`
  );
}

before(() => {
  for (const key of Object.keys(TEXTS.en) as Key[]) {
    Object.assign(TEXTS.zh, { [key]: pseudo(TEXTS.en[key]) });
  }
});

after(() => {
  Object.assign(TEXTS.zh, CHINESE);
});

/** Names, code and messages of the traces below have no letters; what is left are devices, units, cells, and the sign of a note. */
const DATA = /In\[[\d ]*\]|\b(cpu|cuda:\d|float32|ns|µs|ms|s|B|KB|C|G\d|i\d*)\b/g;

function foreign(element: HTMLElement): string[] {
  return wordsIn(element).filter(text => /[A-Za-z]/.test(text.replace(DATA, '')));
}

async function trace(): Promise<ITrace> {
  const finding = {
    rule: '1',
    severity: 'error',
    cause: '',
    message: '`1` 2',
    help: '`3`',
    devices: ['cuda:0', 'cpu'],
    site: 1,
    op: 2,
    count: 3,
    culprit: { name: '4', born: 0, moved: 1 },
    edits: [
      { file: '5', cell: 7, line: 1, before: '', after: '6' },
      { file: '5', cell: 7, line: 2, before: '7', after: '8' }
    ]
  };
  const notes = Array.from({ length: 2 }, () => ({ ...finding, severity: 'note', op: -1, culprit: null }));
  const file = fileOf({
    title: '9',
    ops: opsInTurn(6, op => ({
      name: `1.${op}`,
      device: op % 3,
      call: op < 3 ? 1 : 2,
      site: op % 3,
      phase: ['forward', 'backward', 'optimizer', 'other'][op % 4],
      inputs: [0, 0, 0, 0, 0, 0],
      outputs: [0]
    })),
    shapes: [{ dims: [2, 3] }],
    tensors: [{ device: 0, dtype: 'float32', shape: 0, name: '1' }],
    sites: [1, 2, 3].map(line => ({ file: '5', line, end_line: line, text: `${line}()`, cell: 7, cell_id: 'c' })),
    sources: [{ file: '5', text: '1()\n2()\n3()\n', line: 1, cell: 7, cell_id: 'c' }],
    modules: [
      { path: '1', type: '2' },
      { path: '1.0', parent: 0, type: '3' },
      { path: '1.1', parent: 0, type: '3', ran: 0 }
    ],
    calls: [
      { module: 0, begin: 0, end: 6 },
      { module: 1, parent: 0, begin: 0, end: 3 },
      { module: 1, parent: 0, begin: 3, end: 6 }
    ],
    copies: [{ op: 3, from: 0, to: 1, bytes: 2048, pinned: 1, non_blocking: 1 }],
    errors: [{ op: 2, type: '1', message: '2' }],
    ledger: [{ site: 1, ops: [1, 2, 3], h2d: 1, d2h: 2, d2d: 3, syncs: 4, cpu_compute: 1, bytes: 99 }],
    findings: [finding, ...notes]
  });
  return readTrace({ ...file, language: 'zh', truncated: 5, notes: ['1'] });
}

test('the report and its views take every word from the catalogue', async () => {
  const shown = await trace();
  const page = openPage('zh-CN');
  const host = { reveal: () => undefined, insert: () => undefined };
  const selection = new Selection(shown, host);
  mountReport(page, shown, selection);
  mountReport(page, shown, new Selection(shown, { traceAgain: () => undefined }), '1');
  mountModules(page, shown, selection);
  mountLines(page, shown, selection);
  mountOps(page, shown, selection, '1');
  mountFindings(page, shown, selection, true);
  mountFindings(page, { ...shown, findings: [] }, selection);
  mountFindings(page, { ...shown, findings: null }, selection);
  assert.deepEqual(foreign(page), []);
  assert(wordsIn(page).length > 200);
});

test('what describes an op, and what is copied of a finding, comes from the catalogue', async () => {
  const shown = await trace();
  const texts = Array.from({ length: 6 }, (_, op) => [
    opSentence(shown, op),
    ...opFacts(shown, op).flatMap(({ label, text }) => [label, text])
  ]).flat();
  const [finding] = shown.findings ?? assert.fail();
  const copied = plainText(shown, finding, '✗').split('\n');
  assert.deepEqual(
    [...texts, ...copied].filter(text => /[A-Za-z]/.test(text.replace(DATA, ''))),
    []
  );
});

test('a file that is no trace is refused in the language of the page', async () => {
  const page = openPage('zh');
  await showTrace(page, '{').done;
  await showTrace(page, { format: 'devtrace', version: 99 }).done;
  const texts = wordsIn(page).map(text => text.replace(/\([^)]*\)|Ж/g, ''));
  assert.deepEqual(
    texts.filter(text => /[A-Za-z]/.test(text)),
    []
  );
});

test('the panel takes every word from the catalogue, however it stands with the kernel', async () => {
  for (const shown of await panels()) {
    const page = openPage('zh-CN');
    mountSidebar(page, NO_ACTIONS).update(shown);
    assert.deepEqual(foreign(page), [], shown.link);
  }
});

test('a live timeline and the card of a stripe take every word from the catalogue', () => {
  const page = openPage('zh-CN');
  mountLive(page, new LiveOps(), () => undefined);
  const devices = [{ device: 'cpu', ops: 2, simulated: true }];
  const counts = { h2d: 1, d2h: 2, d2d: 3, syncs: 4, cpuCompute: 5, bytes: 6 };
  const stripe = { line: 1, text: '1', label: '2', devices, isCounting: true, ...counts };
  page.append(stripeCard(page, stripe, true), stripeCard(page, stripe, false));
  assert.deepEqual(foreign(page), []);
});

const LINKS = [
  'nowhere',
  'foreign',
  'connecting',
  'busy',
  'absent',
  'older',
  'newer',
  'connected',
  'no-kernel'
] as const;
const MORE_LINKS = ['starting', 'restarting', 'disconnected', 'dead'] as const;

async function panels(): Promise<ISidebar[]> {
  const outline = await trace();
  const clean = { ...outline, findings: outline.findings?.slice(1) ?? null };
  const rest = { seconds: 1, ops: 5, number: 1, isEarlier: false };
  const entries = [1, 2, 3, 4, 5, 6].map(n => ({
    ...rest,
    key: `${n}`,
    label: `In[${n}]`,
    cell: n < 3 ? 'a' : `${n}`,
    outline: n < 3 || n === 6 ? outline : clean,
    isEarlier: n === 1
  }));
  const cell = { id: 'c', text: '1()\n6\n8\n3()', count: 7, isDirty: true, hasFailed: false };
  const repairs = repairsOf({ entries, cells: new Map([['c', cell]]), inFiles: new Set() });
  const share = (device: string): object => ({ device, tensors: 2, parameters: 3, bytes: 4 });
  const shares = [share('cpu'), share('cuda:0')] as never;
  const kinds = ['module', 'parameter', 'buffer', 'attribute', 'unregistered'] as const;
  const parts = kinds.map(kind => ({ path: '1', kind, type: '2', devices: shares, shape: [1], dtype: 'float32' }));
  const owned = { name: '1', names: ['2'], type: '3' };
  const inventory = {
    devices: ['cpu', 'cuda:0', '?'].map((device, limit) => ({
      device,
      simulated: true,
      tensors: 1,
      parameters: 2,
      bytes: 3,
      memory: { used: 1, highest: 2, limit, holders: [{ what: '4', bytes: 5 }] }
    })),
    holdings: [
      { ...owned, kind: 'model' as const, devices: shares, parts, parts_left_out: 3 },
      ...(['model', 'optimizer', 'tensor'] as const).map(kind => ({ ...owned, kind, devices: [share('cpu')] as never }))
    ],
    left_out: 2,
    cut: true
  };
  const live = { label: 'In[1]', cell: 'a', seconds: 1, ops: 2, copies: 3, copied: 4, devices: [] };
  const full = { ...NOWHERE, name: '1', version: '2', entries, repairs, inventory, live, isSlow: true, fixed: ['2'] };
  const empty = { ...NOWHERE, name: '1', link: 'connected' as const };
  const idle = { ...empty, inventory: { ...inventory, holdings: [] }, live: { ...live, copies: 0 } };
  return [...[...LINKS, ...MORE_LINKS].map(link => ({ ...full, link })), empty, idle];
}

test('no file of the page says a word that is not in the catalogue', () => {
  const isWorded =
    /\b(?:text|title|label|placeholder|caption): (?:'(?![a-z]+\.[a-z-]+')[^']*[A-Za-z]{2}|`[^`$]*[A-Za-z]{2} )/;
  const folders = ['view', 'view/sidebar', 'layout', 'paint', 'jupyter'].map(folder => `labextension/src/${folder}`);
  assert.deepEqual(
    folders.flatMap(linesOf).filter(line => isWorded.test(line)),
    []
  );
});

function linesOf(folder: string): string[] {
  const names = readdirSync(folder).filter(name => name.endsWith('.ts'));
  return names.flatMap(name => readFileSync(`${folder}/${name}`, 'utf8').split('\n'));
}
