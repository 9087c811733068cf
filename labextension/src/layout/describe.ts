/**
 * An op in words: what the hover card, the read-out and the table say of it.
 */
import { autocastOfOps } from '../model/autocasts';
import {
  deviceName,
  deviceOrNone,
  listed,
  modulePath,
  moduleOf,
  opName,
  siteLabel,
  tensorLabel,
  type ITrace
} from '../model/trace';
import { joined, sentence, type Key } from '../model/words/catalogue';
import { unusualDtypesOfOp, withDtype } from './dtypes';
import { formatBytes, formatTime } from './units';

/** What a fact is about. */
type FactKey = Exclude<Extract<Key, `fact.${string}`>, 'fact.tensor'>;

export interface IFact {
  readonly key: FactKey;
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
    fact(trace, 'fact.device', whereOpRan(trace, op), ops.device[op]),
    fact(trace, 'fact.rank', isOfJob(trace) ? String(trace.threads.rank[ops.thread[op]] ?? -1) : ''),
    fact(trace, 'fact.took', failure ? sentence(trace.language, 'fact.raised') : opDuration(trace, op)),
    ...tensorFacts(trace, 'fact.in', listed(ops.inputs, op)),
    ...tensorFacts(trace, 'fact.out', listed(ops.outputs, op)),
    ...copyFacts(trace, op),
    fact(trace, 'fact.module', modulePath(trace, moduleOf(trace, op))),
    fact(trace, 'fact.phase', phaseName(trace, strings[ops.phase[op]])),
    fact(trace, 'fact.autocast', autocastOfOps(trace)[op] ?? ''),
    fact(trace, 'fact.line', site < 0 ? '' : `${siteLabel(trace, site)}  ${strings[sites.text[site]]}`),
    fact(trace, 'fact.error', failure)
  ].filter(({ text }) => text !== '');
}

/** `cuda:0`, `cuda:0 · bfloat16`: where an op ran, and in which dtype where that is not the usual one. */
export function whereOpRan(trace: ITrace, op: number): string {
  return withDtype(deviceName(trace, trace.ops.device[op]), unusualDtypesOfOp(trace, op));
}

export function isOfJob({ threads }: ITrace): boolean {
  return threads.rank.some(rank => rank !== threads.rank[0]);
}

export function fact({ language }: ITrace, key: FactKey, text: string, device = -1): IFact {
  return { key, label: sentence(language, key), text, device };
}

const PHASE_NAMES = new Map<string, 'phase.forward' | 'phase.backward' | 'phase.optimizer' | 'phase.other'>([
  ['forward', 'phase.forward'],
  ['backward', 'phase.backward'],
  ['optimizer', 'phase.optimizer'],
  ['other', 'phase.other']
]);

export function phaseName({ language }: ITrace, phase: string): string {
  const key = PHASE_NAMES.get(phase);
  return key === undefined ? phase : sentence(language, key);
}

export function opDuration(trace: ITrace, op: number): string {
  return trace.ops.duration[op] < 0 ? '–' : formatTime(trace.ops.duration[op]);
}

/** One line for a screen reader. */
export function opSentence(trace: ITrace, op: number): string {
  const facts = opFacts(trace, op).filter(({ key }) => key !== 'fact.in' && key !== 'fact.out');
  return joined(trace.language, [opName(trace, op), ...facts.map(({ label, text }) => `${label} ${text}`)]);
}

function failureOf(trace: ITrace, op: number): string {
  const at = trace.errors.op.indexOf(op);
  return at < 0 ? '' : `${trace.strings[trace.errors.type[at]]}: ${trace.strings[trace.errors.message[at]]}`;
}

function tensorFacts(trace: ITrace, key: 'fact.in' | 'fact.out', tensors: ArrayLike<number>): IFact[] {
  const { language } = trace;
  const shown = Array.from({ length: Math.min(tensors.length, MOST_TENSORS) }, (_, i) => tensors[i]);
  const facts = shown.map(tensor => {
    const name = trace.strings[trace.tensors.name[tensor]];
    const device = trace.tensors.device[tensor];
    const what = `${name && `${name} `}${tensorLabel(trace, tensor)}`;
    const where = deviceOrNone(trace, device);
    return fact(trace, key, sentence(language, 'fact.tensor', { tensor: what, device: where }), device);
  });
  const more = tensors.length - shown.length;
  return more > 0 ? [...facts, fact(trace, key, sentence(language, 'more.items', { count: more }))] : facts;
}

function copyFacts(trace: ITrace, op: number): IFact[] {
  const { copies, language } = trace;
  const facts: IFact[] = [];
  for (let at = copies.op.indexOf(op); at >= 0 && facts.length < MOST_TENSORS; at = copies.op.indexOf(op, at + 1)) {
    const way = `${deviceOrNone(trace, copies.from[at])} → ${deviceOrNone(trace, copies.to[at])}`;
    const pinned = copies.pinned[at] > 0 ? sentence(language, 'fact.pinned') : '';
    const nonBlocking = copies.non_blocking[at] > 0 ? sentence(language, 'fact.non-blocking') : '';
    const text = `${way}  ${formatBytes(copies.bytes[at])}${pinned}${nonBlocking}`;
    facts.push(fact(trace, 'fact.copy', text, copies.to[at]));
  }
  return facts;
}

/** Nanoseconds from the start of op `begin` to the end of the op before `end`; 0 for no ops. */
export function timeOfOps({ ops }: ITrace, begin: number, end: number): number {
  return end <= begin ? 0 : ops.start[end - 1] + Math.max(ops.duration[end - 1], 0) - ops.start[begin];
}
