/**
 * A device's memory as layers on top of each other, one for each kind.
 */
import type { Ints } from '../model/columns';
import { MEMORY_KINDS, type ICurve, type MemoryKind } from '../model/memory';

/** Width and height that outlines are drawn in, stretched to the page's. */
export const AREA = { width: 1000, height: 160 } as const;

/** A limit so many times higher than the peak is no line: it would leave no room for the curve. */
const MUCH_HIGHER = 2;
/** Holders beyond this many say little. */
const MOST_HOLDERS = 12;

export interface ILayer {
  readonly kind: MemoryKind;
  /** From the bottom of the stack, at each point. */
  readonly below: Float64Array;
  readonly bytes: Float64Array;
}

/** The layers, from the bottom up. */
export function layersOf({ ops, parts }: ICurve): ILayer[] {
  const below = new Float64Array(ops.length);
  return MEMORY_KINDS.map(kind => ({ kind, columns: parts.filter(part => part.kind === kind) }))
    .filter(({ columns }) => columns.length > 0)
    .map(({ kind, columns }) => {
      const layer = { kind, below: below.slice(), bytes: summed(columns.map(({ bytes }) => bytes)) };
      layer.bytes.forEach((size, i) => (below[i] += size));
      return layer;
    });
}

function summed(columns: readonly Ints[]): Float64Array {
  const total = new Float64Array(columns[0].length);
  for (const column of columns) {
    column.forEach((size, i) => (total[i] += size));
  }
  return total;
}

export function totalOf(curve: ICurve): Float64Array {
  return summed(curve.parts.map(({ bytes }) => bytes));
}

/** The point at which there is most. */
export function highestOf(sizes: Float64Array): number {
  return sizes.reduce((best, size, i) => (size > sizes[best] ? i : best), 0);
}

/** The bytes that the whole height stands for, for a curve that is so high at most. */
export function ceilingOf({ limit }: ICurve, highest: number): number {
  return highest < limit && limit < MUCH_HIGHER * highest ? limit : Math.max(highest, 1);
}

export interface IHolder {
  readonly kind: MemoryKind;
  /** "" for what has no name. */
  readonly name: string;
  readonly size: number;
}

/** What held memory at a point, the largest first. */
export function holdersAt({ parts }: ICurve, point: number): IHolder[] {
  const holders = parts.map(({ kind, name, bytes }) => ({ kind, name, size: bytes[point] }));
  return holders
    .filter(({ size }) => size > 0)
    .sort((a, b) => b.size - a.size)
    .slice(0, MOST_HOLDERS);
}

/** Where the points are from left to right; each holds until the next, the last until the end. */
export function leftsOf(curve: ICurve, opCount: number): Float64Array {
  return Float64Array.from(curve.ops, op => (AREA.width * Math.min(Math.max(op, 0), opCount)) / Math.max(opCount, 1));
}

/** The outline of a layer, in steps. */
export function outlineOf({ below, bytes }: ILayer, lefts: Float64Array, ceiling: number): string {
  const y = (size: number): string => (AREA.height * (1 - size / ceiling)).toFixed(1);
  const end = (i: number): number => lefts[i + 1] ?? AREA.width;
  const there = Array.from(lefts, (x, i) => `H${x.toFixed(1)}V${y(below[i] + bytes[i])}`).join('');
  const back = Array.from(lefts, (x, i) => `V${y(below[i])}H${x.toFixed(1)}`)
    .reverse()
    .join('');
  return `M${lefts[0].toFixed(1)} ${y(below[0])}${there}H${end(lefts.length - 1)}${back}Z`;
}

/** The point that is shown there: the last one at or before it. */
export function pointAt(lefts: Float64Array, x: number): number {
  return Math.max(
    0,
    lefts.findLastIndex(left => left <= x)
  );
}

/** `44.5 MiB`, in units of 1024 as torch's own error of memory says it. */
export function formatMemory(bytes: number): string {
  const unit = [30, 20, 10].find(power => bytes >= 2 ** power);
  return unit === undefined ? `${bytes} B` : `${(bytes / 2 ** unit).toFixed(1)} ${'KMG'[unit / 10 - 1]}iB`;
}
