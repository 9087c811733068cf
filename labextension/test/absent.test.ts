/**
 * Traces in which ids are absent (-1) wherever the format allows it: each is painted, pointed at, picked, listed and read, and nothing
 * throws or shows what is not there.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opFacts, opSentence, type IFact } from '../src/layout/describe';
import { EVERYTHING } from '../src/layout/filter';
import { plainText } from '../src/layout/finding-text';
import { tableRows, type SortKey } from '../src/layout/table';
import { findingAt, itemAt, pinsOf, pointOfOp, scrollToOp } from '../src/layout/timeline-points';
import * as steps from '../src/layout/timeline-state';
import { columnsOf, TABLE_NAMES, type TableName } from '../src/model/columns';
import type { JsonObject } from '../src/model/findings';
import { pickFinding, pickModule, pickOp, pickSite, type IPicked } from '../src/model/picks';
import { readOutline } from '../src/model/outline';
import { readTrace } from '../src/model/read';
import { repairsOf } from '../src/model/repairs';
import { NOWHERE } from '../src/model/sidebar';
import { stripesOf } from '../src/model/stripes';
import type { ITrace } from '../src/model/trace';
import type { IMarks } from '../src/paint/context';
import { paintMinimap } from '../src/paint/header';
import { Card } from '../src/view/card';
import { Disposables } from '../src/view/disposables';
import { mountLines } from '../src/view/lines';
import { mountMemory } from '../src/view/memory';
import { mountModules } from '../src/view/modules';
import { mountOps } from '../src/view/ops';
import { mountReport } from '../src/view/report';
import { Selection } from '../src/view/selection';
import { mountSidebar } from '../src/view/sidebar/sidebar';
import { markCard, stripeCard } from '../src/view/stripe';
import { Theme } from '../src/view/theme';
import { frameOf, NO_MARKS, paint, recordingContext, type IRecord } from './canvas';
import { NO_ACTIONS, openPage, writtenIn } from './page';
import { fileOf, opsInTurn, seeded, type Story } from './traces';

/** Whether an id is absent: that of a column in a row, or of a finding's field. */
type Absent = (table: TableName | 'findings', column: string, row: number) => boolean;

const COUNT = 12;
const WIDTH = 900;
const HEIGHT = 400;
const NAMES = ['aten.mm', 'aten.add', 'aten._to_copy', 'aten.item'];
const KINDS = ['compute', 'view', 'copy', 'sync'];
const PHASES = ['forward', 'backward', 'optimizer', 'other'];
/** The columns whose ids may be absent. */
const COLUMNS = TABLE_NAMES.flatMap(table =>
  columnsOf(table).flatMap(([column, { kind }]) => (kind === 'row' ? [[table, column] as const] : []))
);
const FIELDS = ['op', 'ops', 'site', 'born', 'moved', 'line', 'device'];

/** Every table has rows, and every id of them leads somewhere. */
function story(isJob: boolean): Story {
  return {
    title: 'In[7]',
    devices: ['cpu', 'cuda:0', 'cuda:1'].map((name, simulated) => ({ name, simulated })),
    threads: [0, 1].map(thread => ({ name: `thread ${thread}`, rank: isJob ? thread : 0 })),
    sites: [0, 1, 2, 3].map(site => ({
      ...{ file: 'a.py', line: site + 1, end_line: site + 1, column: 0, end_column: 3, function: 'f' },
      ...{ text: `f${site}()`, cell: 7, cell_id: 'c', package: site === 3 ? 'torch' : '', caller: 0 }
    })),
    sources: [{ file: 'a.py', text: 'f0()\nf1()\nf2()\nf3()', line: 1, cell: 7, cell_id: 'c' }],
    shapes: [{ dims: [2, 3] }],
    modules: ['model', 'model.a', 'model.b'].map((path, at) => ({
      ...{ path, type: 'Linear', parent: at === 0 ? -1 : 0, site: at, op: at - 1 }
    })),
    calls: [
      { module: 0, begin: 0, end: COUNT },
      { module: 1, parent: 0, begin: 0, end: 6 },
      { module: 2, parent: 0, begin: 6, end: COUNT },
      { module: 1, begin: 1, end: 10, thread: 1 }
    ],
    tensors: Array.from({ length: 6 }, (_, tensor) => ({
      ...{
        device: tensor % 3,
        dtype: tensor % 2 === 0 ? 'float32' : 'bfloat16',
        shape: 0,
        bytes: 24,
        site: tensor % 4
      },
      ...{ producer: tensor, role: ['parameter', 'buffer', ''][tensor % 3], name: `model.a.w${tensor}`, source: 0 }
    })),
    ops: opsInTurn(COUNT, op => ({
      ...{ name: NAMES[op % 4], device: op % 3, kind: KINDS[op % 4] },
      ...{
        phase: PHASES[op % 4],
        call: op % 4,
        site: op % 4,
        thread: op % 2,
        forward: 0,
        duration: op === 11 ? -1 : 30
      },
      ...{ inputs: [op % 6, (op + 2) % 6], outputs: [(op + 1) % 6] }
    })),
    copies: [2, 6, 10].map(op => ({ op, from: (op + 1) % 3, to: op % 3, bytes: 2048, pinned: 1, non_blocking: 1 })),
    moves: [{ module: 0, site: 1, op: 3, device: 1, tensors: 2 }],
    errors: [{ op: 11, type: 'RuntimeError', message: 'no' }],
    ledger: [0, 1, 3].map(site => ({ site, ops: [1, 2, 3], h2d: 1, d2h: 1, syncs: 1, cpu_compute: 1, bytes: 9 })),
    autocasts: [{ thread: 0, begin: 0, end: 8, device: 'cuda', dtype: 'bfloat16', enabled: 1, site: 0, left: 1 }]
  };
}

function findingsOf(absent: Absent): JsonObject[] {
  return ['error', 'warning', 'note'].map((severity, row) => {
    const id = (column: string, value: number): number => (absent('findings', column, row) ? -1 : value);
    const culprit = { name: 'model.a.w1', device: absent('findings', 'device', row) ? '' : 'cuda:1', dtype: 'float32' };
    return {
      ...{ rule: 'r', severity, cause: 'c', message: '`x` is on cpu', help: '`x.cuda()`', devices: ['cpu', 'cuda:0'] },
      ...{ op: id('op', 11 - row), ops: [id('ops', 11 - row), 2], site: id('site', row), count: 2, bytes: 9 },
      culprit: { ...culprit, born: id('born', 0), moved: id('moved', 1) },
      edits: [{ file: 'a.py', cell: 7, line: 1, before: 'f0()', after: 'f0().cuda()' }],
      lines: [{ label: 'Created', site: id('line', 2), remark: '' }]
    };
  });
}

/** The file of a trace with everything but what is absent. */
function fileWithout(absent: Absent, isJob: boolean): Record<string, unknown> {
  const whole = story(isJob);
  const tables = TABLE_NAMES.map(table => {
    const columns = COLUMNS.filter(([each]) => each === table).map(([, column]) => column);
    const rows = (whole[table] ?? []).map((row, at) => ({
      ...row,
      ...Object.fromEntries(columns.filter(column => absent(table, column, at)).map(column => [column, -1]))
    }));
    return [table, rows] as const;
  });
  const curve = { device: 'cuda:0', limit: 0, exact: true, parts: [['parameter', 'model']] };
  return {
    ...fileOf({ ...Object.fromEntries(tables), title: 'In[7]', findings: findingsOf(absent) }),
    memory: [-1, COUNT - 1, COUNT].map(op => ({ ...curve, ops: [op], bytes: [7] }))
  };
}

function picksOf(trace: ITrace): IPicked[] {
  const ids = (length: number): number[] => Array.from({ length }, (_, id) => id);
  return [
    ...ids(trace.ops.length).map(op => pickOp(trace, op)),
    ...ids(trace.findings?.length ?? 0).map(finding => pickFinding(trace, finding)),
    ...ids(trace.modules.length).map(pickModule),
    ...ids(trace.sites.length).map(site => pickSite(trace, site))
  ].filter(picked => picked !== null);
}

/** What is painted of the timeline under each pick, and what its card shows wherever it is pointed at. */
function timelineOf(trace: ITrace, page: HTMLElement): string[] {
  const shown: string[] = [];
  const card = new Card(trace, page);
  const start = steps.resize(steps.startTimeline(trace), WIDTH);
  const states = [start, steps.setClock(start, 'order'), steps.grow(steps.find(start, 'mm'), trace)];
  for (const [at, state] of states.entries()) {
    // Each pick in one of the three: a pick leads through the same code in all of them.
    for (const picked of picksOf(trace).filter((_, i) => i % 3 === at)) {
      const { op, module, finding } = picked;
      const now = steps.showPicked(steps.pick(state, picked));
      const marks = { ...NO_MARKS, selected: op, hovered: op, module, finding, pins: pinsOf(now) };
      shown.push(...painted(now, { ...marks, found: now.found?.tracks ?? null }));
      if (op >= 0) {
        const point = pointOfOp(now, op, scrollToOp(now, op, 0, HEIGHT), HEIGHT);
        shown.push(point === null ? '' : `${point.x} ${point.y}`);
      }
    }
    shown.push(...cardsOf(state, card));
  }
  return [...shown, ...writtenIn(page)];
}

function painted(state: steps.ITimelineState, marks: IMarks): string[] {
  const { timeline, stack, range } = state;
  const frame = frameOf(timeline.trace, { timeline, stack, range, marks, height: HEIGHT });
  const [ctx, small] = recordingContext();
  paintMinimap(ctx, frame);
  return [paint(frame), small].flatMap(wordsOf);
}

function wordsOf({ rects, outlines, texts }: IRecord): string[] {
  const boxes = [...rects, ...outlines].map(({ x, y, width, height, fill }) => [x, y, width, height, fill].join(' '));
  return [...boxes, ...texts.map(({ text, x, y }) => `${text} ${x} ${y}`)];
}

function cardsOf(state: steps.ITimelineState, card: Card): string[] {
  const { stack, timeline } = state;
  const gutter = steps.gutterOf(state);
  const { begin, end } = state.range;
  const shown: string[] = [];
  const seen = new Set<string>();
  for (let op = 0; op < COUNT; op++) {
    const share = (timeline.start[op] - begin) / (end - begin);
    const x = gutter + share * steps.plotWidth(state);
    shown.push(String(findingAt(state, { x, y: timeline.header.flags.y + 1 })));
    for (const { y, height } of stack.rows) {
      for (const down of [1, height + 3]) {
        const point = { x: x + 1, y: timeline.header.height + y + down };
        const item = itemAt(state, point, 0);
        const key = JSON.stringify(item);
        if (seen.has(key)) {
          continue;
        }
        seen.add(key);
        if (item?.kind === 'op') {
          card.showOp(item.op, point);
        } else if (item?.kind === 'call') {
          card.showCall(item.call, point);
        }
        shown.push(...writtenIn(card.node));
      }
    }
  }
  return shown;
}

function textsOf(facts: readonly IFact[]): string[] {
  return facts.map(({ label, text }) => `${label} ${text}`);
}

const SORTED: readonly SortKey[] = ['id', 'name', 'device', 'took', 'module', 'line', 'phase'];

/** What lists and tables have of the ops and the findings. */
function listsOf(trace: ITrace): string[] {
  const filters = [{}, { text: 'a.py' }, { text: 'model' }, { device: 1 }, { module: 0 }];
  const rows = SORTED.flatMap(key =>
    filters.flatMap(filter => [...tableRows(trace, { ...EVERYTHING, ...filter }, { key, falling: true })])
  );
  const ops = Array.from({ length: COUNT }, (_, op) => [opSentence(trace, op), ...textsOf(opFacts(trace, op))]).flat();
  return [...rows.map(String), ...ops, ...(trace.findings ?? []).map(finding => plainText(trace, finding, '✗'))];
}

/** What the page shows once everything on it was picked. */
async function pageOf(trace: ITrace, page: HTMLElement): Promise<string[]> {
  const host = { reveal: () => undefined, insert: () => undefined };
  const selection = new Selection(trace, host);
  mountReport(page, trace, selection);
  mountModules(page, trace, selection);
  mountLines(page, trace, selection);
  mountOps(page, trace, selection, 'id');
  mountMemory(page, trace, selection, new Theme(page, trace, new Disposables()));
  await new Promise(setImmediate); // curves are read before they are shown
  for (const { op, finding, module, site } of picksOf(trace)) {
    selection.pickModule(module);
    selection.pickSite(site);
    selection.pickFinding(finding);
    selection.pickOp(op);
  }
  return writtenIn(page);
}

/** What the panel and the cells' editors show. */
async function notebookOf(file: Record<string, unknown>, page: HTMLElement): Promise<string[]> {
  const read = await readOutline(file);
  const entry = { ...read, key: '1', label: 'In[7]', cell: 'c', number: 1, isEarlier: false };
  const cell = { id: 'c', text: 'f0().cuda()', count: 8, isDirty: true, hasFailed: false };
  const repairs = repairsOf({ entries: [entry], cells: new Map([['c', cell]]), inFiles: new Set() });
  mountSidebar(page, NO_ACTIONS).update({ ...NOWHERE, name: 'a', link: 'connected', entries: [entry], repairs });
  for (const { stripes, marks } of stripesOf([entry]).values()) {
    page.append(...stripes.map(stripe => stripeCard(page, stripe, false)), markCard(page, marks));
  }
  return writtenIn(page);
}

const NOT_THERE = /undefined|NaN|Infinity|\bnull\b|\[object|Error:|--1\b/;

async function expectToBeShown(absent: Absent, isJob: boolean, what: string): Promise<void> {
  const file = fileWithout(absent, isJob);
  try {
    const trace = await readTrace(file);
    const shown = [
      ...timelineOf(trace, openPage('en')),
      ...listsOf(trace),
      ...(await pageOf(trace, openPage('en'))),
      ...(await notebookOf(file, openPage('en')))
    ];
    const wrong = shown.filter(text => NOT_THERE.test(text.replace('RuntimeError: no', '')));
    assert.deepEqual([...new Set(wrong)].slice(0, 9), []);
    assert(shown.length > 500);
  } catch (error) {
    throw new Error(`${what} of a ${isJob ? 'job' : 'program'}`, { cause: error });
  }
}

const EVERY_ID: ReadonlyArray<readonly [string, string]> = [
  ...COLUMNS,
  ...FIELDS.map(field => ['findings', field] as const)
];

for (const isJob of [false, true]) {
  const of = isJob ? 'job' : 'program';
  test(`a trace of a ${of} with all its ids is shown`, () => expectToBeShown(() => false, isJob, 'everything'));

  test(`a trace of a ${of} in which a column has no id is shown`, async () => {
    for (const [table, column] of EVERY_ID) {
      await expectToBeShown((t, c) => t === table && c === column, isJob, `no ${table}.${column}`);
    }
  });

  test(`a trace of a ${of} in which any ids are absent is shown`, async () => {
    for (let seed = 0; seed < 20; seed++) {
      const draw = seeded(seed);
      const share = seed % 4 === 3 ? 1 : 0.15 + (seed % 4) * 0.25;
      await expectToBeShown(() => draw() < share, isJob, `seed ${seed}`);
    }
  });
}
