/**
 * Spans of time in rows that never overlap, with the prefix sum of their lengths: how busy any stretch of a row is comes out exactly,
 * in O(log n), at every zoom level, with no pyramid and no binning.
 */

/** `order` lists the items row by row and by start within a row; the other columns are parallel to it. */
export interface ITracks {
  readonly order: Uint32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** busy[i] is the summed length of the spans before position i, counted from the first position of all rows. */
  readonly busy: Float64Array;
  /** Row r holds the positions rows[r] up to rows[r + 1]. */
  readonly rows: Uint32Array;
}

/** Spans of items 0 to count - 1 by `row` (-1: left out). Within a row starts must not fall; what overlaps is cut short. */
export function buildTracks(
  row: Int32Array,
  rowCount: number,
  start: ArrayLike<number>,
  end: ArrayLike<number>
): ITracks {
  const rows = rowOffsets(row, rowCount);
  const next = rows.slice(0, rowCount);
  const length = rows[rowCount];
  const order = new Uint32Array(length);
  const starts = new Float64Array(length);
  const ends = new Float64Array(length);
  for (let item = 0; item < row.length; item++) {
    if (row[item] >= 0) {
      const at = next[row[item]]++;
      const free = at > rows[row[item]] ? ends[at - 1] : -Infinity;
      order[at] = item;
      starts[at] = Math.max(start[item], free);
      ends[at] = Math.max(end[item], starts[at]);
    }
  }
  return { order, start: starts, end: ends, busy: prefix(starts, ends), rows };
}

function rowOffsets(row: Int32Array, rowCount: number): Uint32Array {
  const rows = new Uint32Array(rowCount + 1);
  for (const r of row) {
    if (r >= 0) {
      rows[r + 1]++;
    }
  }
  for (let r = 0; r < rowCount; r++) {
    rows[r + 1] += rows[r];
  }
  return rows;
}

function prefix(start: Float64Array, end: Float64Array): Float64Array {
  const busy = new Float64Array(start.length + 1);
  for (let i = 0; i < start.length; i++) {
    busy[i + 1] = busy[i] + (end[i] - start[i]);
  }
  return busy;
}

/** The first index in [low, high) whose value is at least (or, `after`, above) `time`; high when there is none. */
export function search(values: Float64Array, time: number, low: number, high: number, after = false): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < time || (after && values[middle] === time)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** The positions of a row whose spans touch [begin, end]. */
export function visible(tracks: ITracks, row: number, begin: number, end: number): [from: number, to: number] {
  const from = search(tracks.end, begin, tracks.rows[row], tracks.rows[row + 1]);
  return [from, search(tracks.start, end, from, tracks.rows[row + 1], true)];
}

/** Fills `share` with how much of each of its pixels the row's spans cover (0 to 1), and `count` with how many spans start there. */
export function coverage(
  tracks: ITracks,
  row: number,
  begin: number,
  perPixel: number,
  share: Float32Array,
  count: Uint32Array
): void {
  const last = tracks.rows[row + 1];
  let at = search(tracks.start, begin, tracks.rows[row], last);
  let before = busyBefore(tracks, row, at, begin);
  for (let x = 0; x < share.length; x++) {
    const time = begin + (x + 1) * perPixel;
    const next = advance(tracks.start, time, at, last);
    const busy = busyBefore(tracks, row, next, time);
    share[x] = perPixel > 0 ? (busy - before) / perPixel : 0;
    count[x] = next - at;
    at = next;
    before = busy;
  }
}

/** Like `search`, but from where the last pixel ended: doubling steps, as the answer is mostly near. */
function advance(values: Float64Array, time: number, from: number, last: number): number {
  let step = 1;
  let low = from;
  while (low + step < last && values[low + step] < time) {
    low += step;
    step *= 2;
  }
  return search(values, time, low, Math.min(last, low + step + 1));
}

/** Busy time of the row before `time`, where `at` is the first position that starts at `time` or after. */
function busyBefore(tracks: ITracks, row: number, at: number, time: number): number {
  const first = tracks.rows[row];
  if (at === first) {
    return tracks.busy[first];
  }
  return tracks.busy[at - 1] + Math.min(tracks.end[at - 1], time) - tracks.start[at - 1];
}
