import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildTracks, coverage, visible, type ITracks } from '../src/layout/tracks';
import { seeded } from './traces';

/** Spans that follow each other with gaps, some of no length, in two rows. */
function someTracks(seed: number): ITracks {
  const random = seeded(seed);
  const row = Int32Array.from({ length: 200 }, () => Math.floor(random() * 3) - 1);
  const free = [0, 0];
  const start: number[] = [];
  const end: number[] = [];
  let now = 0;
  row.forEach(r => {
    now = Math.max(now, r < 0 ? 0 : free[r]) + Math.floor(random() * 20);
    start.push(now);
    end.push(now + Math.floor(random() * 4) * 7);
    free[Math.max(r, 0)] = Math.max(end[end.length - 1], free[Math.max(r, 0)]);
  });
  return buildTracks(row, 2, start, end);
}

function overlap(a: number, b: number, c: number, d: number): number {
  return Math.max(0, Math.min(b, d) - Math.max(a, c));
}

test('how busy each pixel is comes out as if every span were looked at', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const tracks = someTracks(seed);
    const random = seeded(seed + 100);
    const begin = random() * 500 - 50;
    const perPixel = 1 + random() * 40;
    const share = new Float32Array(60);
    const count = new Uint32Array(60);
    for (const row of [0, 1]) {
      coverage(tracks, row, begin, perPixel, share, count);
      share.forEach((value, x) => {
        const [from, to] = [begin + x * perPixel, begin + (x + 1) * perPixel];
        let busy = 0;
        for (let at = tracks.rows[row]; at < tracks.rows[row + 1]; at++) {
          busy += overlap(tracks.start[at], tracks.end[at], from, to);
        }
        assert(
          Math.abs(value * perPixel - busy) < 1e-3,
          `seed ${seed} row ${row} pixel ${x}: ${value * perPixel} ${busy}`
        );
      });
    }
  }
});

test('no span is lost between pixels: the counts of a whole row add up', () => {
  const tracks = someTracks(7);
  const share = new Float32Array(50);
  const count = new Uint32Array(50);
  coverage(tracks, 1, 0, 100, share, count);
  assert.equal(
    count.reduce((sum, value) => sum + value, 0),
    tracks.rows[2] - tracks.rows[1]
  );
});

test('spans of a row never overlap: what does is cut short', () => {
  const tracks = buildTracks(Int32Array.of(0, 0, 0), 1, [0, 5, 6], [10, 8, 30]);
  assert.deepEqual([...tracks.start], [0, 10, 10]);
  assert.deepEqual([...tracks.end], [10, 10, 30]);
});

test('what touches a stretch is found, and nothing else', () => {
  const tracks = buildTracks(Int32Array.of(0, 0, -1, 0), 1, [0, 20, 25, 40], [10, 30, 26, 50]);
  assert.deepEqual(visible(tracks, 0, 11, 19), [1, 1]);
  assert.deepEqual(visible(tracks, 0, 10, 20), [0, 2]);
  assert.deepEqual(visible(tracks, 0, 45, 99), [2, 3]);
});
