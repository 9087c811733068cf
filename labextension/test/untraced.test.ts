import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untracedCell } from '../src/model/untraced';

test('a bundle of an error that nobody traced names its cell', () => {
  assert.equal(untracedCell({ untraced: { cell: 'a1' } }), 'a1');
  assert.equal(untracedCell({ untraced: {} }), '');
  assert.equal(untracedCell({ untraced: 3 }), '');
});

test('a trace names none', () => {
  assert.equal(untracedCell({ format: 'devtrace' }), null);
  assert.equal(untracedCell('{"untraced": {"cell": "a1"}}'), null);
  assert.equal(untracedCell(null), null);
});
