/**
 * Sorting a million rows by a column without a comparison: a radix sort of the keys' bits, four passes of 16 bits, equal digits skipped.
 */

/** The indexes of `keys` in rising order; equal keys keep theirs. */
export function argsort(keys: Float64Array): Uint32Array {
  const bits = orderedBits(keys);
  let order = Uint32Array.from(keys, (_, i) => i);
  let next = new Uint32Array(keys.length);
  for (let half = 1; half >= 0; half--) {
    for (const shift of [0, 16]) {
      const counts = countDigits(bits, half, shift);
      if (counts === null) {
        continue;
      }
      for (const i of order) {
        next[counts[(bits[2 * i + half] >>> shift) & 0xffff]++] = i;
      }
      [order, next] = [next, order];
    }
  }
  return order;
}

/** Each key as two words, high and low, that compare like the key when read as unsigned: the sign turned, negatives inverted. */
function orderedBits(keys: Float64Array): Uint32Array {
  const view = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  const bits = new Uint32Array(2 * keys.length);
  for (let i = 0; i < keys.length; i++) {
    const low = view.getUint32(8 * i, LITTLE_ENDIAN);
    const high = view.getUint32(8 * i + 4, LITTLE_ENDIAN);
    const negative = high >>> 31 === 1;
    bits[2 * i] = negative ? ~high : high ^ 0x80000000;
    bits[2 * i + 1] = negative ? ~low : low;
  }
  return bits;
}

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Find the index of each digit's first key; null when all keys have the same digit. */
function countDigits(bits: Uint32Array, half: number, shift: number): Uint32Array | null {
  const counts = new Uint32Array(0x10000);
  for (let i = half; i < bits.length; i += 2) {
    counts[(bits[i] >>> shift) & 0xffff]++;
  }
  const length = bits.length / 2;
  let before = 0;
  for (let digit = 0; digit < counts.length; digit++) {
    const count = counts[digit];
    if (count === length) {
      return null;
    }
    counts[digit] = before;
    before += count;
  }
  return counts;
}
