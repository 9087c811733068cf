import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opCount, readTrace } from '../src/model/trace';

test('a trace lists its devices with the busiest first', () => {
  const trace = readTrace({ format: 'devtrace', version: 1, title: 'In[1]', counts: { cpu: 2, 'cuda:0': 5 } });
  assert(typeof trace !== 'string');
  assert.deepEqual(trace.counts, [
    ['cuda:0', 5],
    ['cpu', 2]
  ]);
  assert.equal(opCount(trace), 7);
});

test('foreign data and a newer version are refused with a sentence', () => {
  const foreign = readTrace(null);
  assert(typeof foreign === 'string');
  assert.match(foreign, /not a devtrace trace/);
  const newer = readTrace({ format: 'devtrace', version: 2 });
  assert(typeof newer === 'string');
  assert.match(newer, /version 2.*Update devtrace/);
});
