import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupedByText, planFix, together } from '../src/model/edit';
import type { IEdit } from '../src/model/findings';
import { asOneChange, type IUndoManager } from '../src/model/linked-undo';

const EARLY = 'shadow = copy(model)\nmodel = model.to(device)\nrun(model)';

function edit(line: number, before: string, after: string, cell = 1): IEdit {
  return { file: 'f', cell, line, before, after, grade: 'not tried' };
}

const MOVED_BELOW = [
  { edit: edit(1, 'shadow = copy(model)', ''), anchor: 'shadow = copy(model)' },
  { edit: edit(2, '', 'shadow = copy(model)'), anchor: 'model = model.to(device)' }
];

function applied(text: string, plan: ReturnType<typeof planFix>): string {
  assert(typeof plan === 'object');
  return [...plan]
    .sort((a, b) => b.from - a.from)
    .reduce((result, { from, to, insert }) => result.slice(0, from) + insert + result.slice(to), text);
}

test('a fix that takes a line out above and puts it in below moves it', () => {
  assert.equal(
    applied(EARLY, planFix(EARLY, MOVED_BELOW)),
    'model = model.to(device)\nshadow = copy(model)\nrun(model)'
  );
});

test('a line that goes leaves no empty one', () => {
  const remove = (text: string, line: number): string =>
    applied(text, planFix(text, [{ edit: edit(line, 'b', ''), anchor: 'b' }]));
  assert.equal(remove('a\nb\nc', 2), 'a\nc');
  assert.equal(remove('a\nb', 2), 'a');
  assert.equal(remove('b', 1), '');
});

test('a fix of which one edit no longer fits changes nothing', () => {
  assert.equal(planFix('shadow = copy(model)\nmodel = net', MOVED_BELOW), 'changed');
  assert.equal(together([[], 'changed']), 'changed');
  assert.equal(together([[], 'done']), 'changed');
});

test('a fix that has been put in is not put in again', () => {
  const put = [{ edit: edit(1, '', 'n'), anchor: 'a' }];
  assert.equal(planFix('a\nn\nb', put), 'done');
  assert.equal(together(['done', 'done']), 'done');
  assert.deepEqual(together([[]]), [[]]);
});

test('edits are put together by their cell', () => {
  const groups = groupedByText([edit(1, '', 'a', 4), edit(2, '', 'b', 5), edit(3, '', 'c', 4)]);
  assert.deepEqual(
    groups.map(group => group.map(({ line }) => line)),
    [[1, 3], [2]]
  );
});

class History implements IUndoManager {
  readonly undoStack: unknown[] = [];
  private _listeners = new Set<(event: { stackItem: unknown }) => void>();

  constructor(count: number) {
    for (let i = 0; i < count; i++) {
      this.undoStack.push({});
    }
  }

  stopCapturing(): void {
    // Nothing is being captured.
  }

  undo(): void {
    const stackItem = this.undoStack.pop();
    [...this._listeners].forEach(listener => {
      listener({ stackItem });
    });
  }

  on(_: string, listener: (event: { stackItem: unknown }) => void): void {
    this._listeners.add(listener);
  }

  off(_: string, listener: (event: { stackItem: unknown }) => void): void {
    this._listeners.delete(listener);
  }

  get watched(): number {
    return this._listeners.size;
  }
}

test('one undo takes back what several cells took as one change, once', () => {
  const [first, second] = [new History(2), new History(1)];
  asOneChange([first, second], () => undefined);
  second.undo();
  assert.deepEqual([first.undoStack.length, second.undoStack.length], [1, 0]);
  first.undo();
  assert.deepEqual([first.undoStack.length, first.watched, second.watched], [0, 0, 0]);
});

test('a cell that was edited since keeps what came on top', () => {
  const [first, second] = [new History(1), new History(1)];
  asOneChange([first, second], () => undefined);
  first.undoStack.push({});
  first.undo();
  assert.equal(second.undoStack.length, 1);
  second.undo();
  assert.equal(first.undoStack.length, 0);
});
