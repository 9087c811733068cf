import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildBoxes, type IBox, type IOpening } from '../src/layout/boxes';
import { crossings } from '../src/layout/crossings';
import { layOutBoxes, type IBoxBounds, type Lead } from '../src/layout/flow';
import { boxesByModule, linksOf } from '../src/layout/links';
import { moduleTree } from '../src/layout/modules';
import { routesOf } from '../src/layout/routes';
import type { ITrace } from '../src/model/trace';
import { opsInTurn, traceOf, type Story } from './traces';

const AS_IT_IS: IOpening = { opened: new Map(), unfolded: new Set() };

/** A model of blocks of two layers each, with the weights of block i on devices[i]; each layer runs one op. */
function blocks(devices: readonly number[], more: Partial<Story> = {}): Promise<ITrace> {
  const modules = [
    { path: 'model', parent: -1 },
    { path: 'model.h', parent: 0, ran: 0 }
  ];
  const calls = [{ module: 0, parent: -1, begin: 0, end: devices.length * 2 }];
  const tensors: Array<Record<string, number | string>> = [];
  devices.forEach((device, i) => {
    const block = modules.push({ path: `model.h.${i}`, parent: 1 }) - 1;
    const call = calls.push({ module: block, parent: 0, begin: 2 * i, end: 2 * i + 2 }) - 1;
    for (const [k, name] of ['ln', 'fc'].entries()) {
      const module = modules.push({ path: `model.h.${i}.${name}`, parent: block }) - 1;
      calls.push({ module, parent: call, begin: 2 * i + k, end: 2 * i + k + 1 });
      tensors.push({ device, role: 'parameter', name: `model.h.${i}.${name}.weight` });
    }
  });
  const callOf = (op: number): number => 1 + Math.floor(op / 2) * 3 + (op % 2) + 1;
  const ops = opsInTurn(devices.length * 2, op => ({
    device: devices[Math.floor(op / 2)],
    call: callOf(op),
    inputs: [op]
  }));
  return traceOf({ modules, calls, tensors, ops, ...more });
}

/** `model(h(0…2×3(ln fc)))` */
function drawn(boxes: readonly IBox[]): string {
  return boxes
    .map(({ nodes, repeats, children }) => {
      const name = repeats > 1 ? `${nodes[0].name}…${nodes[repeats - 1].name}×${repeats}` : nodes[0].name;
      return children.length > 0 ? `${name}(${drawn(children)})` : name;
    })
    .join(' ');
}

function draw(trace: ITrace, opening = AS_IT_IS): string {
  return drawn(buildBoxes(trace, moduleTree(trace), opening));
}

test('repeats fold into one box', async () => {
  assert.equal(draw(await blocks([1, 1, 1, 1])), 'model(h(0…3×4(ln fc)))');
});

test('a fold never hides a change of device', async () => {
  assert.equal(draw(await blocks([1, 1, 1, 2, 2])), 'model(h(0…2×3(ln fc) 3…4×2(ln fc)))');
  assert.equal(draw(await blocks([1, 0, 1])), 'model(h(0(ln fc) 1(ln fc) 2(ln fc)))');
});

test('a fold never hides the device of one parameter deep below', async () => {
  const trace = await blocks([1, 1, 1]);
  trace.tensors.device[3] = 0;
  assert.equal(draw(trace), 'model(h(0(ln fc) 1(ln fc) 2(ln fc)))');
});

test('a module with a finding is folded into nothing', async () => {
  const finding = { rule: 'r', severity: 'error', cause: '', message: '', help: '', op: 3 };
  const trace = await blocks([1, 1, 1, 1], { findings: [finding] });
  assert.equal(draw(trace), 'model(h(0(ln fc) 1(ln fc) 2…3×2(ln fc)))');
  const [model] = moduleTree(trace);
  assert.deepEqual([model.alarm, model.ownAlarm], [2, 0]);
});

test('a note is no alarm: it neither marks a module nor keeps it out of a fold', async () => {
  const finding = { rule: 'r', severity: 'note', cause: '', message: '', help: '', op: 3 };
  const trace = await blocks([1, 1, 1, 1], { findings: [finding] });
  assert.equal(draw(trace), 'model(h(0…3×4(ln fc)))');
  assert.equal(moduleTree(trace)[0].alarm, 0);
});

test('query, key and value are no repeats, however alike they are', async () => {
  const modules = ['m', 'm.query', 'm.key', 'm.value'].map((path, i) => ({
    path,
    parent: i === 0 ? -1 : 0,
    type: 'Linear'
  }));
  const calls = modules.map((_, module) => ({ module, parent: module === 0 ? -1 : 0, begin: 0, end: 0 }));
  assert.equal(draw(await traceOf({ modules, calls })), 'm(query key value)');
});

test('a fold opens when asked, and boxes close', async () => {
  const trace = await blocks([1, 1]);
  assert.equal(draw(trace, { ...AS_IT_IS, unfolded: new Set([2, 5]) }), 'model(h(0(ln fc) 1(ln fc)))');
  assert.equal(draw(trace, { ...AS_IT_IS, opened: new Map([[1, false]]) }), 'model(h)');
});

test('modules stand in the order in which they ran, not in that of their definition', async () => {
  const modules = ['m', 'm.head', 'm.body', 'm.idle'].map((path, i) => ({
    path,
    parent: i === 0 ? -1 : 0,
    ran: i === 3 ? 0 : 1
  }));
  const calls = [0, 2, 1].map((module, i) => ({ module, parent: i === 0 ? -1 : 0, begin: 0, end: 0 }));
  const trace = await traceOf({ modules, calls });
  assert.equal(draw(trace), 'm(body head idle)');
  assert.deepEqual(
    moduleTree(trace)[0].children.map(({ ran }) => ran),
    [true, true, false]
  );
});

test('what a module did is pluralize with all below it', async () => {
  const [model] = moduleTree(await blocks([1, 2]));
  assert.deepEqual([model.ops, model.time, [...model.parameterDevices], [...model.opDevices]], [4, 40, [1, 2], [1, 2]]);
});

/** `m` with a weight that is copied from the CPU to device 1 by op 0 and used by op 1, in the call of `m` or outside of it. */
function moved(copied: number, used: number): Promise<ITrace> {
  return traceOf({
    modules: [{ path: 'm' }],
    calls: [{ module: 0, begin: 0, end: 2 }],
    tensors: [0, 1].map(device => ({ device, role: 'parameter', name: 'm.weight' })),
    ops: [
      { start: 0, device: 1, kind: 'copy', call: copied, inputs: [0], outputs: [1] },
      { start: 20, device: 1, call: used, inputs: [1] }
    ],
    copies: [{ op: 0, from: 0, to: 1, bytes: 64, source: 0 }]
  });
}

test('a parameter that was moved lies where it was moved to', async () => {
  for (const used of [-1, 0]) {
    assert.deepEqual([...moduleTree(await moved(-1, used))[0].parameterDevices], [1]);
  }
});

test('a model that is taken back after its last call is shown where it ran', async () => {
  const trace = await traceOf({
    modules: [{ path: 'm' }],
    calls: [{ module: 0, begin: 0, end: 1 }],
    tensors: [1, 0].map(device => ({ device, role: 'parameter', name: 'm.weight' })),
    ops: [
      { start: 0, device: 1, call: 0, inputs: [0] },
      { start: 20, device: 0, kind: 'copy', inputs: [0], outputs: [1] }
    ]
  });
  assert.deepEqual([...moduleTree(trace)[0].parameterDevices], [1]);
});

test('moving a model is no data that crosses, but a weight that a call copies is', async () => {
  assert.deepEqual(crossings(await moved(-1, 0)), []);
  assert.equal(crossings(await moved(0, 0)).length, 1);
});

test('of two models with one name each keeps its own parameters', async () => {
  const trace = await traceOf({
    modules: [{ path: 'b' }, { path: 'b.fc', parent: 0 }, { path: 'b' }, { path: 'b.fc', parent: 2 }],
    calls: [1, 3].map((module, i) => ({ module, begin: i, end: i + 1 })),
    tensors: [1, 2].map(device => ({ device, role: 'parameter', name: 'b.fc.weight' })),
    ops: opsInTurn(2, op => ({ call: op, inputs: [op] }))
  });
  assert.deepEqual(
    moduleTree(trace).map(({ parameterDevices }) => [...parameterDevices]),
    [[1], [2]]
  );
});

test('a weight that its parent used makes a module one that ran', async () => {
  const trace = await traceOf({
    modules: [{ path: 'att' }, { path: 'att.out', parent: 0, ran: 0 }],
    calls: [{ module: 0, begin: 0, end: 1 }],
    tensors: [{ device: 1, role: 'parameter', name: 'att.out.weight' }],
    ops: opsInTurn(1, () => ({ call: 0, inputs: [0] }))
  });
  assert.equal(moduleTree(trace)[0].children[0].ran, true);
});

test('modules that hang below each other in a circle, or very deep, are drawn', async () => {
  const circle = await traceOf({ modules: [1, 2, 0].map((parent, i) => ({ path: `m${i}`, parent })) });
  assert(moduleTree(circle).length > 0);
  const deep = Array.from({ length: 20_000 }, (_, i) => ({ path: `m${i}`, parent: i - 1 }));
  const roots = moduleTree(await traceOf({ modules: deep }));
  assert.equal(roots.length, 1);
  let count = 0;
  const visit = (nodes: typeof roots): void => {
    for (const node of nodes) {
      count++;
      visit(node.children);
    }
  };
  visit(roots);
  assert.equal(count, 20_000);
});

function layOut(trace: ITrace, width: number, lead: (box: IBox) => Lead = () => 'none') {
  const boxes = buildBoxes(trace, moduleTree(trace), AS_IT_IS);
  const measure = ({ nodes }: IBox) => ({ title: nodes[0].name, detail: 'LayerNorm · 6 ops · 39 µs' });
  return { boxes, flow: layOutBoxes(boxes, width, measure, lead) };
}

function isInside(inner: IBoxBounds, outer: IBoxBounds): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

test('boxes lie in the boxes that hold them and beside their neighbours, at every width', async () => {
  const trace = await blocks([1, 1, 2, 0, 1, 1]);
  for (const width of [10, 320, 500, 900, 1600]) {
    const { bounds } = layOut(trace, width).flow;
    bounds.forEach((box, i) => {
      assert(box.parent < 0 || isInside(box, bounds[box.parent]), `${width}: box ${i}`);
      for (const other of bounds.slice(i + 1).filter(({ parent }) => parent === box.parent)) {
        const apart = box.x + box.width <= other.x || other.x + other.width <= box.x;
        assert(apart || box.y + box.height <= other.y || other.y + other.height <= box.y, `${width}: box ${i}`);
      }
    });
  }
});

/** Two blocks on two devices, with a copy of the first's result between them. */
function crossing(): Promise<ITrace> {
  return traceOf({
    modules: [{ path: 'm' }, { path: 'm.a', parent: 0 }, { path: 'm.b', parent: 0 }, { path: 'm.b.in', parent: 2 }],
    calls: [
      { module: 0, begin: 0, end: 4 },
      { module: 1, parent: 0, begin: 0, end: 1 },
      { module: 2, parent: 0, begin: 3, end: 4 },
      { module: 3, parent: 2, begin: 3, end: 4 }
    ],
    tensors: [
      { device: 1, producer: 0 },
      { device: 1, producer: 1 },
      { device: 2, producer: 2 },
      { device: 2, producer: 3 }
    ],
    ops: [
      { start: 0, device: 1, call: 1, outputs: [0] },
      { start: 20, device: 1, call: 0, kind: 'view', inputs: [0], outputs: [1] },
      { start: 40, device: 2, call: 0, kind: 'copy', inputs: [1], outputs: [2] },
      { start: 60, device: 2, call: 3, inputs: [2], outputs: [3] }
    ],
    copies: [{ op: 2, from: 1, to: 2, bytes: 512, source: 1 }]
  });
}

test('a crossing goes from the module that made the data to the one that used it', async () => {
  assert.deepEqual(crossings(await crossing()), [{ source: 1, target: 3, from: 1, to: 2, bytes: 512 }]);
});

test('an arrow joins neighbours, and its way ends where the box begins', async () => {
  const trace = await crossing();
  for (const width of [150, 1200]) {
    const { boxes, flow } = layOut(trace, width, ({ nodes }) => (nodes[0].name === 'b' ? 'neighbour' : 'none'));
    const links = linksOf(crossings(trace), boxes, boxesByModule(boxes));
    assert.deepEqual(
      links.map(({ source, target, bytes }) => [source?.nodes[0].name, target.nodes[0].name, bytes]),
      [['a', 'b', 512]]
    );
    const [route] = routesOf(flow, links);
    const target = flow.bounds.find(({ box }) => box.nodes[0].name === 'b');
    assert(target);
    assert.equal(route.heading, width === 150 ? 'down' : 'right');
    assert(route.heading === 'down' ? route.tip.y === target.y : route.tip.x === target.x);
  }
});

test('data that stays within one box has no arrow', async () => {
  const trace = await crossing();
  const boxes = buildBoxes(trace, moduleTree(trace), { ...AS_IT_IS, opened: new Map([[0, false]]) });
  assert.deepEqual(linksOf(crossings(trace), boxes, boxesByModule(boxes)), []);
});
