/**
 * What the sidebar and the kernel may say to each other: the mirror of `panel/messages.py`, over the same messages.json. What does not
 * fit it is refused, with the reason in one line.
 */
import spec from '../../../src/devtrace/notebook/panel/messages.json';
import { short } from './errors';
import { isObject, type JsonObject } from './findings';

export const PROTOCOL = spec.protocol;

const LONGEST_TEXT = 100_000;

type Fields = Readonly<Record<string, string>>;
const shapes: Readonly<Record<string, Fields>> = spec.shapes;

export interface IState {
  readonly tracing: boolean;
  /** How many CUDA devices are pretended. */
  readonly simulated: number;
  readonly max_ops: number;
  /** A cell is being traced. */
  readonly running: boolean;
}

export interface ILiveDevice {
  readonly device: string;
  readonly simulated: boolean;
  readonly ops: number;
  readonly bytes: number;
}

/** A cell while it is traced. */
export interface ILive {
  readonly label: string;
  readonly cell: string;
  readonly seconds: number;
  readonly ops: number;
  readonly copies: number;
  readonly copied: number;
  readonly devices: readonly ILiveDevice[];
}

/** A trace that the kernel keeps. */
export interface ITraced {
  readonly trace: number;
  readonly label: string;
  readonly cell: string;
  readonly seconds: number;
  readonly ops: number;
  readonly outline: JsonObject;
}

export interface IHolds {
  readonly device: string;
  readonly tensors: number;
  readonly parameters: number;
  readonly bytes: number;
}

export interface IPart {
  readonly path: string;
  readonly kind: 'module' | 'parameter' | 'buffer' | 'attribute' | 'unregistered';
  readonly type: string;
  readonly devices: readonly IHolds[];
  readonly shape?: readonly number[];
  readonly dtype?: string;
}

export interface IHolding {
  readonly kind: 'model' | 'optimizer' | 'tensor';
  readonly name: string;
  readonly names: readonly string[];
  readonly type: string;
  readonly devices: readonly IHolds[];
  readonly shape?: readonly number[];
  readonly dtype?: string;
  readonly main?: string;
  readonly parts?: readonly IPart[];
  readonly parts_left_out?: number;
}

export interface IInventory {
  readonly devices: ReadonlyArray<IHolds & { readonly simulated: boolean }>;
  readonly holdings: readonly IHolding[];
  readonly left_out: number;
  readonly cut: boolean;
}

export type ToPanel =
  | {
      readonly kind: 'welcome';
      readonly request: number;
      readonly protocol: number;
      readonly version: string;
      readonly folder: string;
      readonly fresh: boolean;
    }
  | { readonly kind: 'done'; readonly request: number }
  | { readonly kind: 'refused'; readonly request: number; readonly reason: string }
  | {
      readonly kind: 'update';
      readonly state?: IState;
      readonly live?: ILive;
      readonly traces?: readonly ITraced[];
      readonly kept?: readonly number[];
      readonly inventory?: IInventory;
    }
  | { readonly kind: 'trace'; readonly request: number; readonly data: JsonObject }
  | { readonly kind: 'file'; readonly request: number; readonly name: string; readonly text: string };

export type ToKernel =
  | { readonly kind: 'hello'; readonly protocol: number; readonly visible: boolean }
  | { readonly kind: 'show'; readonly visible: boolean }
  | { readonly kind: 'trace_cells'; readonly on: boolean }
  | { readonly kind: 'trace_next'; readonly cell: string }
  | { readonly kind: 'simulate'; readonly devices: number }
  | { readonly kind: 'limit'; readonly max_ops: number }
  | { readonly kind: 'fetch'; readonly trace: number }
  | { readonly kind: 'export'; readonly trace: number; readonly form: 'html' | 'perfetto' };

/** A message from the kernel; a string says why it is refused. */
export function readMessage(data: unknown): ToPanel | string {
  return refusal('to_panel', data) ?? (data as ToPanel);
}

/** Why a message is refused, in one line; null for one that is as it should be. */
export function refusal(direction: 'to_kernel' | 'to_panel', data: unknown): string | null {
  const kinds: Readonly<Record<string, Fields>> = spec[direction];
  if (!isObject(data) || typeof data['kind'] !== 'string' || !Object.hasOwn(kinds, data['kind'])) {
    return `a message of an unknown kind: ${short(isObject(data) ? data['kind'] : data)}`;
  }
  const { kind, ...rest } = data;
  return wrongFields(kind, rest, kinds[kind]);
}

function wrongFields(where: string, data: JsonObject, fields: Fields): string | null {
  const unknown = Object.keys(data).find(key => !Object.hasOwn(fields, key) && !Object.hasOwn(fields, `${key}?`));
  if (unknown !== undefined) {
    return `${where} has an unknown field ${short(unknown)}`;
  }
  for (const [name, type] of Object.entries(fields)) {
    const key = name.replace(/\?$/, '');
    const missing = !Object.hasOwn(data, key);
    if (missing && key === name) {
      return `${where} has no ${key}`;
    }
    const reason = missing ? null : wrong(`${where}.${key}`, data[key], type);
    if (reason !== null) {
      return reason;
    }
  }
  return null;
}

function wrong(where: string, value: unknown, type: string): string | null {
  if (type.startsWith('[')) {
    if (!Array.isArray(value)) {
      return `${where} is ${short(value)}, expected a list`;
    }
    for (const item of value) {
      const reason = wrong(`${where}[]`, item, type.slice(1, -1));
      if (reason !== null) {
        return reason;
      }
    }
    return null;
  }
  if (/^[A-Z]/.test(type)) {
    return isObject(value)
      ? wrongFields(where, value, shapes[type])
      : `${where} is ${short(value)}, expected an object`;
  }
  return fits(value, type) ? null : `${where} is ${short(value)}, expected ${type}`;
}

function fits(value: unknown, type: string): boolean {
  switch (type) {
    case 'flag':
      return typeof value === 'boolean';
    case 'count':
      return Number.isSafeInteger(value) && (value as number) >= 0;
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    case 'trace':
      return isObject(value);
    case 'long':
      return typeof value === 'string';
    case 'text':
      return typeof value === 'string' && value.length <= LONGEST_TEXT;
    default:
      return typeof value === 'string' && type.split('|').includes(value);
  }
}
