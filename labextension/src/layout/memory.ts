/**
 * A device's memory as layers on top of each other: its kinds, or the names of one kind.
 */
import type { Ints } from '../model/columns';
import { MEMORY_KINDS, type ICurve, type MemoryKind } from '../model/memory';

/** Width and height that outlines are drawn in, stretched to the page's. */
export const AREA = { width: 1000, height: 160 } as const;

/** A limit so many times higher than the peak is no line: it would leave no room for the curve. */
const MUCH_HIGHER = 2;

export interface ILayer {
  readonly kind: MemoryKind;
  /** "" for a whole kind, and for what has no name. */
  readonly name: string;
  /** From the bottom of the stack, at each point. */
  readonly below: Float64Array;
  readonly bytes: Float64Array;
}

/** The layers, from the bottom up: of one kind its names, where it is opened. */
export function layersOf(curve: ICurve, opened: MemoryKind | null): ILayer[] {
  const below = new Float64Array(curve.ops.length);
  const groups =
    opened === null
      ? MEMORY_KINDS.map(kind => ({ kind, name: '', parts: curve.parts.filter(part => part.kind === kind) }))
      : curve.parts.filter(part => part.kind === opened).map(part => ({ ...part, parts: [part] }));
  return groups
    .filter(({ parts }) => parts.length > 0)
    .map(({ kind, name, parts }) => {
      const layer = { kind, name, below: below.slice(), bytes: summed(parts.map(({ bytes }) => bytes)) };
      layer.bytes.forEach((size, i) => (below[i] += size));
      return layer;
    });
}

function summed(columns: readonly Ints[]): Float64Array {
  const total = new Float64Array(columns[0]?.length ?? 0);
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

/** The bytes that the whole height stands for. */
export function ceilingOf(curve: ICurve, layers: readonly ILayer[], whole: boolean): number {
  const top = layers.at(-1);
  const highest = Math.max(1, ...(top?.bytes.map((size, i) => size + top.below[i]) ?? []));
  return whole && highest < curve.limit && curve.limit < MUCH_HIGHER * highest ? curve.limit : highest;
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

/** A layer that is as high, over as much of the width, has room for its letter. */
const ROOM = { width: AREA.width / 30, height: 13 } as const;

/** Where a layer's letter stands: at a point of the curve, so far from the left. */
interface ISpot {
  readonly point: number;
  readonly x: number;
}

/** The middle of the longest stretch in which a layer has room for its letter; the line of the peak ends a stretch. */
export function letterSpot({ bytes }: ILayer, lefts: Float64Array, ceiling: number, peak: number): ISpot | null {
  const end = (i: number): number => lefts[i + 1] ?? AREA.width;
  let [begin, widest] = [0, ROOM.width];
  let found: ISpot | null = null;
  bytes.forEach((size, i) => {
    begin = i === peak ? i : begin;
    begin = (AREA.height * size) / ceiling < ROOM.height ? i + 1 : begin;
    if (begin <= i && end(i) - lefts[begin] >= widest) {
      widest = end(i) - lefts[begin];
      const point = pointAt(lefts, lefts[begin] + widest / 2);
      found = { point, x: (lefts[point] + end(point)) / 2 };
    }
  });
  return found;
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
