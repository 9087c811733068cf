/**
 * An op in words: what the hover card, the read-out and the table say of it.
 */
import { deviceName, listed, modulePath, moduleOf, opName, siteLabel, tensorLabel, type ITrace } from '../model/trace';
import { formatBytes, formatTime } from './units';

export interface IFact {
  readonly label: string;
  readonly text: string;
  /** The device that the fact is about, -1 for none. */
  readonly device: number;
}

/** A few tensors are listed; an optimizer's op has thousands. */
const MOST_TENSORS = 4;

export function opFacts(trace: ITrace, op: number): IFact[] {
  const { ops, sites, strings } = trace;
  const site = ops.site[op];
  const failure = failureOf(trace, op);
  return [
    fact('device', deviceName(trace, ops.device[op]), ops.device[op]),
    fact('took', failure ? 'raised' : opDuration(trace, op)),
    ...tensorFacts(trace, 'in', listed(ops.inputs, op)),
    ...tensorFacts(trace, 'out', listed(ops.outputs, op)),
    ...copyFacts(trace, op),
    fact('module', modulePath(trace, moduleOf(trace, op))),
    fact('phase', strings[ops.phase[op]]),
    fact('line', site < 0 ? '' : `${siteLabel(trace, site)}  ${strings[sites.text[site]]}`),
    fact('error', failure)
  ].filter(({ text }) => text !== '');
}

function fact(label: string, text: string, device = -1): IFact {
  return { label, text, device };
}

export function opDuration(trace: ITrace, op: number): string {
  return trace.ops.duration[op] < 0 ? '–' : formatTime(trace.ops.duration[op]);
}

/** One line for a screen reader. */
export function opSentence(trace: ITrace, op: number): string {
  const facts = opFacts(trace, op).filter(({ label }) => label !== 'in' && label !== 'out');
  return [opName(trace, op), ...facts.map(({ label, text }) => `${label} ${text}`)].join(', ');
}

function failureOf(trace: ITrace, op: number): string {
  const at = trace.errors.op.indexOf(op);
  return at < 0 ? '' : `${trace.strings[trace.errors.type[at]]}: ${trace.strings[trace.errors.message[at]]}`;
}

function tensorFacts(trace: ITrace, label: string, tensors: ArrayLike<number>): IFact[] {
  const shown = Array.from({ length: Math.min(tensors.length, MOST_TENSORS) }, (_, i) => tensors[i]);
  const facts = shown.map(tensor => {
    const name = trace.strings[trace.tensors.name[tensor]];
    const device = trace.tensors.device[tensor];
    const text = `${name && `${name} `}${tensorLabel(trace, tensor)} on ${deviceName(trace, device) || 'no device'}`;
    return fact(label, text, device);
  });
  const more = tensors.length - shown.length;
  return more > 0 ? [...facts, fact(label, `and ${more} more`)] : facts;
}

function copyFacts(trace: ITrace, op: number): IFact[] {
  const { copies } = trace;
  const facts: IFact[] = [];
  for (let at = copies.op.indexOf(op); at >= 0 && facts.length < MOST_TENSORS; at = copies.op.indexOf(op, at + 1)) {
    const way = `${deviceName(trace, copies.from[at])} → ${deviceName(trace, copies.to[at])}`;
    const how = (copies.pinned[at] > 0 ? ', pinned' : '') + (copies.non_blocking[at] > 0 ? ', non-blocking' : '');
    facts.push(fact('copy', `${way}  ${formatBytes(copies.bytes[at])}${how}`, copies.to[at]));
  }
  return facts;
}

/** Nanoseconds from the start of op `begin` to the end of the op before `end`; 0 for no ops. */
export function timeOfOps({ ops }: ITrace, begin: number, end: number): number {
  return end <= begin ? 0 : ops.start[end - 1] + Math.max(ops.duration[end - 1], 0) - ops.start[begin];
}
