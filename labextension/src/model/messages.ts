/**
 * The check of messages between the page and the kernel: the mirror of `panel/messages.py`, over the same messages.json. A message that
 * does not fit is refused, with the reason in one line.
 */
import spec from '../../../src/devtrace/notebook/panel/messages.json';
import { short } from './errors';
import { isObject, type JsonObject } from './findings';
import type { ToPanel } from './message-types';

export type * from './message-types';
export const PROTOCOL = spec.protocol;

const LONGEST_TEXT = 100_000;

type Fields = Readonly<Record<string, string>>;
const shapes: Readonly<Record<string, Fields>> = spec.shapes;

type Direction = 'to_kernel' | 'to_panel' | 'to_view' | 'from_view';

/** A message from the kernel; a string says why it is refused. */
export function readMessage(data: unknown): ToPanel | string {
  return refusal('to_panel', data) ?? (data as ToPanel);
}

/** Why a message is refused, in one line; null for one that is as it should be. */
export function refusal(direction: Direction, data: unknown): string | null {
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
    return Array.isArray(value)
      ? firstWrong(`${where}[]`, value, type.slice(1, -1))
      : `${where} is ${short(value)}, expected a list`;
  }
  if (/^[A-Z{]/.test(type) && !isObject(value)) {
    return `${where} is ${short(value)}, expected an object`;
  }
  if (type.startsWith('{')) {
    return firstWrong(`${where}{}`, Object.values(value as JsonObject), type.slice(1, -1));
  }
  if (/^[A-Z]/.test(type)) {
    return wrongFields(where, value as JsonObject, shapes[type]);
  }
  return fits(value, type) ? null : `${where} is ${short(value)}, expected ${type}`;
}

function firstWrong(where: string, values: readonly unknown[], type: string): string | null {
  for (const value of values) {
    const reason = wrong(where, value, type);
    if (reason !== null) {
      return reason;
    }
  }
  return null;
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
