import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IFrame } from '../src/paint/context';
import { paintMinimap } from '../src/paint/header';
import { severityLook } from '../src/paint/palette';
import { waitTicks } from '../src/paint/waits';
import { COLOURS, frameOf, NO_MARKS, paint, recordingContext, type IRecord, type IRect } from './canvas';
import { opsInTurn, traceOf } from './traces';

function boxes(record: IRecord, frame: IFrame): IRect[] {
  return record.rects.filter(({ fill, x }) => COLOURS.includes(fill) && x >= frame.gutter);
}

test('each op has a box in its device’s colour, with edges on device pixels at any ratio', async () => {
  const trace = await traceOf({ ops: opsInTurn(10, op => ({ device: op % 3 })) });
  for (const ratio of [1, 1.25, 1.5, 2, 3]) {
    const frame = frameOf(trace, { ratio });
    const drawn = boxes(paint(frame), frame);
    assert.equal(drawn.length, 10);
    for (const { x, width } of drawn) {
      for (const edge of [x, x + width]) {
        assert(Math.abs(edge * ratio - Math.round(edge * ratio)) < 1e-6, `${edge} at ${ratio}`);
      }
    }
  }
});

test('where boxes are too narrow, columns cover as much as the ops do', async () => {
  const trace = await traceOf({ ops: opsInTurn(50_000, op => ({ duration: op % 2 === 0 ? 12 : 3 })) });
  const frame = frameOf(trace);
  const drawn = boxes(paint(frame), frame);
  assert(drawn.length < 2 * frame.width);
  assert(drawn.every(({ alpha }) => alpha >= 0.25 && alpha <= 1));
  const covered = drawn.reduce((sum, { width }) => sum + width, 0);
  assert(covered > frame.width * 0.94 && covered <= frame.width, String(covered));
});

test('a single short op in an empty hour is seen', async () => {
  const trace = await traceOf({
    ops: [
      { start: 0, device: 0 },
      { start: 1.8e12, device: 1, duration: 1 },
      { start: 3.6e12, device: 0 }
    ]
  });
  const frame = frameOf(trace);
  const [alone] = boxes(paint(frame), frame).filter(({ fill }) => fill === '#gpu0');
  assert(alone.width >= 1 && alone.alpha >= 0.25);
});

test('names stand in the boxes that have room, and never stick out', async () => {
  const name = 'aten.scaled_dot_product_attention';
  const trace = await traceOf({ ops: opsInTurn(12, op => ({ name, duration: 2 + op * 40, start: op * 600 })) });
  const frame = frameOf(trace);
  const record = paint(frame);
  const drawn = boxes(record, frame);
  const names = record.texts.filter(({ text, x }) => x > frame.gutter && text.startsWith('scal'));
  assert(names.length > 0 && names.length < 12);
  for (const { text, x, y } of names) {
    const box = drawn.find(rect => x >= rect.x && x <= rect.x + rect.width && y >= rect.y && y <= rect.y + rect.height);
    assert(box && x + text.length * 6 <= box.x + box.width, text);
  }
});

test('what a search did not find fades', async () => {
  const trace = await traceOf({ ops: opsInTurn(4) });
  const plain = frameOf(trace);
  const { tracks } = plain.timeline.lanes;
  const found = { ...tracks, order: tracks.order.slice(0, 1), rows: Uint32Array.of(0, 1) };
  const frame = frameOf(trace, { marks: { ...NO_MARKS, found } });
  const alphas = boxes(paint(frame), frame).map(({ alpha }) => alpha);
  assert.equal(alphas.filter(alpha => alpha === 1).length, 1);
  assert.equal(alphas.filter(alpha => alpha < 0.3).length, 4);
});

test('a finding has its pin, its outline, and its tensor’s name in the lane that it comes from', async () => {
  const finding = {
    ...{ rule: 'r', severity: 'error', cause: '', message: '', help: '', op: 2 },
    culprit: { name: 'model.out_head.weight', device: 'cpu' }
  };
  const trace = await traceOf({ ops: opsInTurn(3, op => ({ duration: op === 2 ? -1 : 10 })), findings: [finding] });
  const pins = [{ finding: 0, op: 2, severity: 'error' as const, x: 5 }];
  const frame = frameOf(trace, { marks: { ...NO_MARKS, pins } });
  const { texts, outlines } = paint(frame);
  assert(texts.some(({ text }) => text === '✗'));
  assert.equal(outlines.filter(({ fill }) => fill === severityLook('error', false).fill).length, 1);
  const name = texts.find(({ text }) => text === 'model.out_head.weight');
  const [lane] = frame.stack.lanes;
  const top = frame.timeline.header.height + lane.y;
  assert(name && name.y >= top && name.y <= top + lane.height);
});

test('copies say how many bytes crossed', async () => {
  const trace = await traceOf({ ops: opsInTurn(1), copies: [{ op: 0, from: 0, to: 1, bytes: 2000 }] });
  assert(paint(frameOf(trace)).texts.some(({ text }) => text === '2.0 KB'));
});

test('the bytes of a copy are left out where the next arrow is in their way', async () => {
  const copied = (op: number) => ({ op, from: 0, to: 1, bytes: (op + 1) * 1000 });
  const trace = await traceOf({
    ops: opsInTurn(3, op => ({ device: 1, start: [70, 80, 600][op] })),
    copies: [0, 1, 2].map(copied)
  });
  const { texts } = paint(frameOf(trace, { range: { begin: 0, end: 800 } }));
  assert.deepEqual(
    texts.map(({ text }) => text).filter(text => text.endsWith('KB')),
    ['2.0 KB', '3.0 KB']
  );
});

test('a copy whose op is not in the trace makes no lane, and what no thread ran has no title', async () => {
  const copies = [{ op: -1, from: 0, to: 1, bytes: 2000 }];
  const trace = await traceOf({ ops: opsInTurn(2, op => ({ thread: op - 1 })), copies });
  const { timeline } = frameOf(trace);
  assert.equal(timeline.lanes.lanes.length, 2);
  assert(paint(frameOf(trace)).texts.some(({ text }) => text === 'MainThread'));
});

test('only the rows in view are painted, of ten thousand', async () => {
  const threads = Array.from({ length: 10_000 }, (_, id) => ({ name: `thread ${id}` }));
  const trace = await traceOf({ ops: opsInTurn(10_000, op => ({ thread: op })), threads });
  const { texts } = paint(frameOf(trace, { scrolled: 200_000 }));
  assert(texts.length > 2 && texts.length < 60, String(texts.length));
});

test('a name of a million letters costs no more than a short one', async () => {
  const trace = await traceOf({ ops: opsInTurn(1, () => ({ name: 'x'.repeat(1_000_000) })) });
  assert(paint(frameOf(trace)).texts.every(({ text }) => text.length < 200));
});

test('the minimap shows every lane over the whole time', async () => {
  const trace = await traceOf({ ops: opsInTurn(30, op => ({ device: op % 3 })) });
  const [ctx, record] = recordingContext();
  paintMinimap(ctx, frameOf(trace, { range: { begin: 0, end: 1 } }));
  assert.deepEqual(new Set(record.rects.map(({ fill }) => fill)), new Set(COLOURS));
});

test('the lanes of each rank of a job stand below its number', async () => {
  const ops = opsInTurn(4, op => ({ thread: op % 2, device: op % 3 }));
  const threads = [3, 5].map(rank => ({ name: 'MainThread', rank }));
  const titles = paint(frameOf(await traceOf({ ops, threads }))).texts.filter(({ text }) => text.startsWith('rank'));
  assert.deepEqual(
    titles.map(({ text }) => text.slice(0, 8)),
    ['rank 3 ·', 'rank 5 ·']
  );
});

test('how long an idle stretch was stands in the axis, where no time is written over it', async () => {
  const trace = await traceOf({ ops: opsInTurn(40, op => ({ start: op < 20 ? op * 20 : 3.01e9 + op * 20 })) });
  for (const width of [800, 420 - 84]) {
    const frame = frameOf(trace, { width });
    const { axis } = frame.timeline.header;
    const words = paint(frame).texts.filter(({ y }) => y === axis.y + axis.height / 2);
    assert.equal(words.filter(({ text }) => text === '3.01 s idle').length, 1);
    const spans = words.map(({ text, x }) => [x, x + text.length * 6]).sort(([a], [b]) => a - b);
    spans.slice(1).forEach(([left], i) => {
      assert(left >= spans[i][1], `${JSON.stringify(words)} at ${width}`);
    });
  }
});

test('the bytes of a copy stand above the ticks of waits, and not where a finding is marked', async () => {
  const trace = await traceOf({
    ops: opsInTurn(60, op => ({ device: op === 0 ? 0 : 1, kind: op === 2 ? 'sync' : 'compute', start: op * 10 })),
    copies: [{ op: 1, from: 0, to: 1, bytes: 8 }]
  });
  const frame = frameOf(trace);
  const label = paint(frame).texts.find(({ text }) => text === '8 B');
  const tick = waitTicks(frame)[0];
  assert(label && tick.x < label.x - frame.gutter + 3 * 6 && tick.x > label.x - frame.gutter);
  assert(label.y + 4 <= frame.timeline.header.height + tick.y - 5);
  const pin = { finding: 0, op: 2, severity: 'error', x: tick.x } as const;
  const marked = paint(frameOf(trace, { marks: { ...NO_MARKS, pins: [pin] } }));
  assert(!marked.texts.some(({ text }) => text === '8 B'));
});
