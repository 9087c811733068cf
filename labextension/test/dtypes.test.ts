import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildBoxes } from '../src/layout/boxes';
import { opFacts } from '../src/layout/describe';
import { unusualDtypesOfOp } from '../src/layout/dtypes';
import { moduleTree } from '../src/layout/modules';
import type { ITrace } from '../src/model/trace';
import { boxText } from '../src/view/module-box';
import { opsInTurn, traceOf } from './traces';

/** Layers of a weight each, of these dtypes, which run one after the other. */
function layers(dtypes: readonly string[], made: ReadonlyArray<readonly string[]> = []): Promise<ITrace> {
  const modules = [{ path: 'net', type: 'Net', parent: -1 }];
  const calls = [{ module: 0, parent: -1, begin: 0, end: dtypes.length }];
  const tensors: Array<Record<string, string | number>> = [];
  dtypes.forEach((dtype, i) => {
    const module = modules.push({ path: `net.${i}`, type: 'Linear', parent: 0 }) - 1;
    calls.push({ module, parent: 0, begin: i, end: i + 1 });
    tensors.push({ device: 1, dtype, role: 'parameter', name: `net.${i}.weight` });
  });
  const outputs = made.map(each => each.map(dtype => tensors.push({ device: 1, dtype }) - 1));
  const ops = opsInTurn(dtypes.length, op => ({ call: op + 1, inputs: [op], outputs: outputs[op] ?? [] }));
  return traceOf({ modules, calls, tensors, ops });
}

function details(trace: ITrace): string[] {
  const [root] = buildBoxes(trace, moduleTree(trace), { opened: new Map(), unfolded: new Set() });
  return [root, ...root.children].map(box => boxText(trace, box).detail.split(' · ').slice(0, 2).join(' · '));
}

test('a box names the dtype of parameters that is not that of most, and no fold hides it', async () => {
  const trace = await layers(['bfloat16', 'bfloat16', 'bfloat16', 'float32']);
  assert.deepEqual(details(trace), ['Net · bfloat16 + float32', 'Linear · 3 ops', 'Linear · float32']);
});

test('where all parameters have one dtype no box names it', async () => {
  assert.deepEqual(details(await layers(['float16', 'float16'])), ['Net · 2 ops', 'Linear · 2 ops']);
});

test('an op shows the dtype that it made, where its parameters have another', async () => {
  const trace = await layers(['float32', 'float32', 'float32'], [['bfloat16'], ['float32', 'float32'], ['int64']]);
  assert.deepEqual(
    [0, 1, 2].map(op => unusualDtypesOfOp(trace, op)),
    ['bfloat16', '', '']
  );
  assert.deepEqual(
    [0, 1].map(op => opFacts(trace, op).find(({ key }) => key === 'fact.device')?.text),
    ['cuda:0 · bfloat16', 'cuda:0']
  );
});

test('what a parameter was before its cast does not count', async () => {
  const before = ['0', '1', '2'].map(name => ({ dtype: 'float32', role: 'parameter', name: `net.${name}.weight` }));
  const after = before.slice(0, 2).map(({ name }) => ({ dtype: 'float16', role: 'parameter', name }));
  const trace = await traceOf({ tensors: [...before, ...after], ops: opsInTurn(5, op => ({ outputs: [op] })) });
  assert.deepEqual(
    [2, 3].map(op => unusualDtypesOfOp(trace, op)),
    ['float32', '']
  );
});

test('an op that made nothing has the dtypes that it was given', async () => {
  const trace = await traceOf({
    tensors: [{ dtype: 'float32', role: 'parameter' }, { dtype: 'float64' }, { dtype: 'int64' }],
    ops: opsInTurn(2, op => ({ inputs: op === 0 ? [1, 0] : [2] }))
  });
  assert.deepEqual(
    [0, 1].map(op => unusualDtypesOfOp(trace, op)),
    ['float32 + float64', '']
  );
});

test('without parameters the dtype of most tensors is the usual one', async () => {
  const trace = await traceOf({
    tensors: [{ dtype: 'float64' }, { dtype: 'float64' }, { dtype: 'float32' }],
    ops: opsInTurn(3, op => ({ outputs: [op] }))
  });
  assert.deepEqual(
    [0, 1, 2].map(op => unusualDtypesOfOp(trace, op)),
    ['', '', 'float32']
  );
});
