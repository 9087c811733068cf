import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentsPath } from '../src/jupyter/paths';

test('a file below the root is found by the folder in which the notebook runs', () => {
  assert.equal(contentsPath('/home/u/work/lib/a.py', 'sub/n.ipynb', '/home/u/work/sub', ''), 'lib/a.py');
  assert.equal(contentsPath('/home/u/work/a.py', 'n.ipynb', '/home/u/work', ''), 'a.py');
});

test('a file below the root is found by the root that the page knows', () => {
  assert.equal(contentsPath('/srv/a.py', 'sub/n.ipynb', '/elsewhere', '/srv'), 'a.py');
  assert.equal(contentsPath('/srv/a.py', 'sub/n.ipynb', '', '/srv/'), 'a.py');
});

test('a relative file is beside the notebook', () => {
  assert.equal(contentsPath('lib/a.py', 'sub/n.ipynb', '', ''), 'sub/lib/a.py');
  assert.equal(contentsPath('../a.py', 'sub/n.ipynb', '', ''), 'a.py');
});

test('a file outside of the root is nowhere', () => {
  assert.equal(contentsPath('/usr/lib/a.py', 'n.ipynb', '/home/u', '/home/u'), null);
  assert.equal(contentsPath('/home/user2/a.py', 'n.ipynb', '/home/u', '~'), null);
  assert.equal(contentsPath('/home/u/../../etc/passwd', 'n.ipynb', '/home/u', ''), null);
  assert.equal(contentsPath('../../a.py', 'sub/n.ipynb', '', ''), null);
});

test("Windows's paths are taken as they are written there", () => {
  assert.equal(contentsPath('C:\\work\\lib\\a.py', 'sub/n.ipynb', 'C:\\work\\sub', ''), 'lib/a.py');
});
