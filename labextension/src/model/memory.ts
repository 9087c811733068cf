/**
 * The memory of devices over a trace, as Python has summed it up: read only where it is shown.
 */
import type { Ints } from './columns';
import { damaged } from './errors';
import { isObject } from './findings';
import { ColumnReader } from './packed';

export const MEMORY_KINDS = [
  'parameter',
  'buffer',
  'optimizer-state',
  'gradient',
  'named',
  'activation',
  'temporary'
] as const;
export type MemoryKind = (typeof MEMORY_KINDS)[number];

/** What is of one kind and one name ("": the others): its bytes at each point. */
interface IPart {
  readonly kind: MemoryKind;
  readonly name: string;
  readonly bytes: Ints;
}

export interface ICurve {
  readonly device: string;
  /** 0: nobody knows it. */
  readonly limit: number;
  /** Until release; else a tensor counts until its last use, at the least. */
  readonly exact: boolean;
  /** The op of each point, -1 before the first. */
  readonly ops: Ints;
  readonly parts: readonly IPart[];
}

export function readMemory(data: readonly unknown[]): Promise<ICurve[]> {
  const reader = new ColumnReader();
  return Promise.all(data.map(each => readCurve(reader, each)));
}

async function readCurve(reader: ColumnReader, data: unknown): Promise<ICurve> {
  const { device, limit, exact, parts, ops: points, bytes: sizes } = isObject(data) ? data : {};
  const ops = await reader.read('memory.ops', points, true);
  const bytes = await reader.read('memory.bytes', sizes, true);
  if (!Array.isArray(parts) || parts.length * ops.length !== bytes.length || bytes.length === 0) {
    throw damaged('memory has other bytes than its parts and points');
  }
  return {
    device: String(device),
    limit: Number(limit) || 0,
    exact: exact === true,
    ops,
    parts: parts.map((part: unknown, i) => {
      const [kind, name] = Array.isArray(part) ? (part as unknown[]) : [];
      if (!isKind(kind)) {
        throw damaged('memory is of a kind that there is not');
      }
      return { kind, name: String(name), bytes: bytes.subarray(i * ops.length, (i + 1) * ops.length) };
    })
  };
}

function isKind(kind: unknown): kind is MemoryKind {
  return MEMORY_KINDS.some(each => each === kind);
}
