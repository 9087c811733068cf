import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planEdit, type IChange } from '../src/model/edit';
import type { IEdit } from '../src/model/findings';
import { utf16Column, locate } from '../src/model/source-span';

const LINES = ['import torch', 'x = 1', '', 'y = 2', 'x = 1', ''];

test('a line that stands where it was is found there', () => {
  assert.equal(locate(LINES, 2, 'x = 1'), 2);
  assert.equal(locate(LINES, 5, 'x = 1'), 5);
});

test('a line that has moved is found by its text, the nearest first', () => {
  assert.equal(locate(LINES, 1, 'y = 2'), 4);
  assert.equal(locate(LINES, 4, 'x = 1'), 5);
  assert.equal(locate(LINES, 90, 'import torch'), 1);
});

test('a line that is gone is found nowhere, and space at its end does not count', () => {
  assert.equal(locate(LINES, 2, 'z = 3'), 0);
  assert.equal(locate(LINES, 2, 'x = 1   '), 2);
  assert.equal(locate(LINES, 7, null), 0);
  assert.equal(locate(LINES, 6, null), 6);
});

test('columns in bytes become columns in UTF-16', () => {
  assert.equal(utf16Column('abc', 2), 2);
  assert.equal(utf16Column('é = x', 3), 2);
  assert.equal(utf16Column('𝄞 = x', 4), 2);
  assert.equal(utf16Column('abc', 99), 3);
  assert.equal(utf16Column(null, 3), -1);
  assert.equal(utf16Column('abc', -1), -1);
});

function edit(line: number, before: string, after: string): IEdit {
  return { file: 'f', cell: 1, line, before, after, grade: 'not tried' };
}

function applied(text: string, change: IChange | string): string {
  assert(typeof change === 'object');
  const result = text.slice(0, change.from) + change.insert + text.slice(change.to);
  return `${result.slice(0, change.selectFrom)}[${result.slice(change.selectFrom, change.selectTo)}]${result.slice(change.selectTo)}`;
}

test('new lines go below their line, at the top and below a last line without an end', () => {
  assert.equal(applied('a\nb', planEdit('a\nb', edit(1, '', 'n'), 'a')), 'a\n[n]\nb');
  assert.equal(applied('a\nb', planEdit('a\nb', edit(2, '', 'n\nm'), 'b')), 'a\nb\n[n\nm]');
  assert.equal(applied('a\nb', planEdit('a\nb', edit(0, '', 'n'), null)), '[n]\na\nb');
  assert.equal(applied('', planEdit('', edit(0, '', 'n'), null)), '[n]\n');
});

test('new lines follow the line that they belong to', () => {
  assert.equal(applied('z\na\nb', planEdit('z\na\nb', edit(1, '', 'n'), 'a')), 'z\na\n[n]\nb');
});

test('lines are replaced where they stand now', () => {
  assert.equal(applied('a\nb\nc', planEdit('a\nb\nc', edit(2, 'b', 'x'), null)), 'a\n[x]\nc');
  assert.equal(applied('z\na\nb\nc', planEdit('z\na\nb\nc', edit(1, 'a\nb', 'x\ny\nw'), null)), 'z\n[x\ny\nw]\nc');
  assert.equal(applied('a\nb', planEdit('a\nb', edit(2, 'b', ''), null)), 'a[]');
  assert.equal(applied('b\na\nb', planEdit('b\na\nb', edit(3, 'b', 'x'), null)), 'b\na\n[x]');
});

test('an edit whose lines have changed does not fit, and one that was made is not made again', () => {
  assert.equal(planEdit('a\nq', edit(2, 'b', 'x'), null), 'changed');
  assert.equal(planEdit('q', edit(1, '', 'n'), 'a'), 'changed');
  assert.equal(planEdit('a\nx', edit(2, 'b', 'x'), null), 'done');
  assert.equal(planEdit('a\nn\nb', edit(1, '', 'n'), 'a'), 'done');
});
