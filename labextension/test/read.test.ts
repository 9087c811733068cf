import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { dump } from './dump';
import { FormatError } from '../src/model/errors';
import type { JsonObject } from '../src/model/findings';
import { readTrace } from '../src/model/read';

const GOLDEN = 'tests/golden';
const traces = readdirSync(GOLDEN).filter(name => name.endsWith('.devtrace'));

function golden(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(`${GOLDEN}/${name}`, 'utf8')) as Record<string, unknown>;
}

test('there are golden traces to read', () => {
  assert(traces.length > 0);
});

for (const name of traces) {
  test(`${name} is dumped to the same text as by Python`, async () => {
    const trace = await readTrace(readFileSync(`${GOLDEN}/${name}`, 'utf8'));
    const findings = golden(name)['findings'] as JsonObject[] | null;
    assert.equal(dump(trace, findings ?? null), readFileSync(`${GOLDEN}/${name.replace('.devtrace', '.txt')}`, 'utf8'));
  });
}

async function refusal(data: unknown): Promise<string> {
  const error = await readTrace(data).then(
    () => assert.fail('it was read'),
    (reason: unknown) => reason
  );
  assert(error instanceof FormatError, String(error));
  return error.message;
}

test('what is no trace is refused with what was got, expected and to do', async () => {
  assert.equal(
    await refusal({ cells: [] }),
    'trace-foreign: got {"cells":[]}; expected a JSON object with "format": "devtrace"; ' +
      'open a file that trace.save() wrote.'
  );
  assert.match(await refusal('{"format": "devtr'), /trace-foreign: got a file that is not JSON/);
  assert.match(await refusal(null), /trace-foreign: got null/);
});

test('a newer version is refused with the advice to update', async () => {
  assert.match(await refusal({ ...golden('head.devtrace'), version: 9 }), /trace-newer.*version 9.*pip install -U/);
});

const damages: ReadonlyArray<readonly [what: string, damage: (trace: Trace) => void, sentence: RegExp]> = [
  ['a missing table', trace => Reflect.deleteProperty(trace, 'ops'), /the table ops is missing/],
  ['a column of another length', trace => list(trace, 'ops', 'grad').pop(), /ops.grad has 3 rows where ops.name has 4/],
  ['a reference outside of its table', trace => (list(trace, 'ops', 'site')[0] = 99), /ops.site points outside/],
  ['text outside of the strings', trace => (list(trace, 'ops', 'name')[0] = -1), /ops.name points outside/],
  ['times that fall', trace => (list(trace, 'ops', 'start')[0] = 1e9), /ops.start is negative or falls/],
  ['a number that is none', trace => (list(trace, 'ops', 'start')[0] = 'x'), /ops.start is not a list of integers/],
  ['half a number', trace => (list(trace, 'ops', 'start')[0] = 0.5), /ops.start is not a list of integers/],
  ['an absurd number', trace => (list(trace, 'ops', 'grad')[0] = 2 ** 40), /ops.grad holds a number beyond/],
  ['a negative size', trace => (list(trace, 'tensors', 'bytes')[0] = -1), /tensors.bytes is negative/],
  ['calls that do not nest', trace => (list(trace, 'calls', 'end')[1] = 9), /a call/],
  ['offsets that fall', trace => (offsets(trace)[1] = 9), /the offsets of ops.inputs do not run from 0/],
  ['a column that is a number', trace => (trace['ops']['name'] = 7), /ops.name is 7, expected a column/],
  ['a column that is not base64', trace => (trace['ops']['name'] = packed('§')), /ops.name is not base64/],
  ['a column that lies about its length', trace => (trace['ops']['name'] = packed('eJw=')), /claims 1000000 values/],
  ['a column that does not inflate', trace => (trace['ops']['name'] = packed('AAAA', 4)), /does not decompress/],
  ['findings that are none', trace => (trace['findings'] = 3 as never), /findings is not a list/]
];

type Trace = Record<string, Record<string, unknown>>;

function list(trace: Trace, table: string, column: string): unknown[] {
  return trace[table][column] as unknown[];
}

function offsets(trace: Trace): number[] {
  return (trace['ops']['inputs'] as { offsets: number[] }).offsets;
}

function packed(data: string, length = 1_000_000): Record<string, unknown> {
  return { length, width: 4, lag: 0, data };
}

for (const [what, damage, sentence] of damages) {
  test(`${what} is refused with one sentence`, async () => {
    const trace = golden('head.devtrace') as Trace;
    damage(trace);
    assert.match(await refusal(trace), sentence);
  });
}
