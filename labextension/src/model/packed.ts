/**
 * A column of integers as format v1 writes it: a plain JSON list, or {length, width, lag, data} where `data` is base64 of zlib over
 * byte planes of x[i] - x[i - lag]. The browser's own DecompressionStream reads it; nothing in the data is trusted.
 */
import type { Ints } from './columns';
import { damaged, short } from './errors';

/** Integers beyond this are not exact here, and Python refuses them too. */
const LARGEST = 2 ** 53;
const LARGEST_INT32 = 2 ** 31 - 1;
/** Integers that one file may hold in all (3 million ops). */
const MOST_VALUES = 100_000_000;
/** Deflate cannot expand further (its limit is 1032): a column that claims more is refused before memory is taken. */
const DEFLATE_RATIO = 1100;

interface IPacked {
  readonly length: number;
  readonly width: 1 | 2 | 4 | 8;
  readonly lag: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Facts of a column that the checks need again and again, found once while it is read. */
export interface IExtent {
  readonly low: number;
  readonly high: number;
  /** True if a value is below the one before it. */
  readonly falls: boolean;
}

/** Reads columns, keeps their extents, and counts the integers that it takes memory for. */
export class ColumnReader {
  readonly extents = new Map<Ints, IExtent>();
  private _left = MOST_VALUES;

  async read(where: string, data: unknown, wide: boolean): Promise<Ints> {
    const read = Array.isArray(data) ? this._plain(where, data) : await this._packed(where, data);
    const extent = extentOf(read);
    const limit = wide ? LARGEST : LARGEST_INT32;
    if (extent.low < -limit || extent.high > limit) {
      throw damaged(`${where} holds a number beyond ${limit}`);
    }
    const values = wide ? read : new Int32Array(read);
    this.extents.set(values, extent);
    return values;
  }

  private _plain(where: string, data: readonly unknown[]): Float64Array {
    this._take(where, data.length);
    if (!data.every(value => Number.isInteger(value))) {
      throw damaged(`${where} is not a list of integers`);
    }
    return Float64Array.from(data as readonly number[]);
  }

  private async _packed(where: string, data: unknown): Promise<Float64Array> {
    const packed = readPacked(where, data);
    this._take(where, packed.length);
    return unpack(packed, await inflate(where, packed.bytes, packed.length * packed.width));
  }

  private _take(where: string, values: number): void {
    this._left -= values;
    if (this._left < 0) {
      throw damaged(`${where} brings the file over ${MOST_VALUES} values`);
    }
  }
}

function extentOf(values: Float64Array): IExtent {
  let low = Infinity;
  let high = -Infinity;
  let falls = false;
  let before = -Infinity;
  for (const value of values) {
    low = value < low ? value : low;
    high = value > high ? value : high;
    falls ||= value < before;
    before = value;
  }
  return { low, high, falls };
}

function readPacked(where: string, data: unknown): IPacked {
  if (typeof data !== 'object' || data === null) {
    throw damaged(`${where} is ${short(data)}, expected a column`);
  }
  const { length, width, lag, data: text } = data as Record<string, unknown>;
  if (!isCount(length) || !isCount(lag) || !isWidth(width) || typeof text !== 'string') {
    throw damaged(`${where} has no valid length, width, lag and data`);
  }
  const bytes = fromBase64(where, text);
  if (length * width > DEFLATE_RATIO * bytes.length) {
    throw damaged(`${where} claims ${length} values, more than its ${bytes.length} bytes can hold`);
  }
  return { length, width, lag, bytes };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isWidth(value: unknown): value is IPacked['width'] {
  return value === 1 || value === 2 || value === 4 || value === 8;
}

function fromBase64(where: string, text: string): Uint8Array<ArrayBuffer> {
  try {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) {
      bytes[i] = binary.charCodeAt(i);
    }
    return bytes;
  } catch {
    throw damaged(`${where} is not base64`);
  }
}

async function inflate(where: string, bytes: Uint8Array<ArrayBuffer>, expected: number): Promise<Uint8Array> {
  const stream = new DecompressionStream('deflate');
  const writer = stream.writable.getWriter();
  // The reader below reports what goes wrong; unheard, the writer's own promises would report it once more.
  void writer.write(bytes).catch(() => undefined);
  void writer.close().catch(() => undefined);
  const raw = new Uint8Array(expected);
  const length = await readInto(raw, stream.readable.getReader()).catch(() => {
    throw damaged(`${where} does not decompress`);
  });
  if (length !== expected) {
    throw damaged(`${where} decompresses to another length than the ${expected} bytes it names`);
  }
  return raw;
}

/** Fills `raw`; the result is how many bytes came, and reading stops at the first that does not fit. */
async function readInto(raw: Uint8Array, reader: ReadableStreamDefaultReader<Uint8Array>): Promise<number> {
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return length;
    }
    if (length + value.length > raw.length) {
      void reader.cancel().catch(() => undefined);
      return length + value.length;
    }
    raw.set(value, length);
    length += value.length;
  }
}

/** Joins the byte planes and undoes the lag. */
function unpack({ length, width, lag }: IPacked, raw: Uint8Array): Float64Array {
  const values = new Float64Array(length);
  JOINS[width](raw, values);
  if (lag > 0) {
    for (let i = lag; i < length; i++) {
      values[i] += values[i - lag];
    }
  }
  return values;
}

/** By width: fills the values from their planes. A loop for each, as this is most of what reading a file costs. */
const JOINS: Record<IPacked['width'], (raw: Uint8Array, values: Float64Array) => void> = {
  1: (raw, values) => {
    for (let i = 0; i < values.length; i++) {
      values[i] = (raw[i] << 24) >> 24;
    }
  },
  2: (raw, values) => {
    const n = values.length;
    for (let i = 0; i < n; i++) {
      values[i] = ((raw[i] << 16) | (raw[i + n] << 24)) >> 16;
    }
  },
  4: (raw, values) => {
    for (let i = 0; i < values.length; i++) {
      values[i] = word(raw, i, values.length);
    }
  },
  8: (raw, values) => {
    const n = values.length;
    for (let i = 0; i < n; i++) {
      values[i] = (word(raw, i, n) >>> 0) + word(raw, i + 4 * n, n) * 2 ** 32;
    }
  }
};

function word(raw: Uint8Array, i: number, n: number): number {
  return raw[i] | (raw[i + n] << 8) | (raw[i + 2 * n] << 16) | (raw[i + 3 * n] << 24);
}
