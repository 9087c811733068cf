/**
 * Which dtypes are worth a word: floating ones other than the usual dtype of a trace, which is that of most of its parameters.
 */
import { listed, type ITrace } from '../model/trace';

const FLOATING = /^(b?float|complex)/;
const usual = new WeakMap<ITrace, string>();

/** `float32`, or `bfloat16 + float32` where there are several; "" where there is the usual one alone. */
export function unusualDtypes(trace: ITrace, dtypes: Iterable<number>): string {
  const names = [...new Set(dtypes)].map(dtype => trace.strings[dtype]).filter(name => FLOATING.test(name));
  return names.every(name => name === usualDtype(trace)) ? '' : names.sort().join(' + ');
}

/** The same of what an op made, or of what it was given where it made nothing: it raised. */
export function unusualDtypesOfOp(trace: ITrace, op: number): string {
  const made = listed(trace.ops.outputs, op);
  return unusualDtypes(trace, Array.from(made.length > 0 ? made : listed(trace.ops.inputs, op), dtypeOf(trace)));
}

/** A device and, where it is worth a word, the dtype there. */
export function withDtype(where: string, dtype: string): string {
  return dtype === '' ? where : `${where} · ${dtype}`;
}

function dtypeOf({ tensors }: ITrace): (tensor: number) => number {
  return tensor => tensors.dtype[tensor];
}

function usualDtype(trace: ITrace): string {
  const found = usual.get(trace) ?? mostOf(trace, 'parameter') ?? mostOf(trace) ?? '';
  usual.set(trace, found);
  return found;
}

/** The floating dtype that most tensors of a role have, or most of all. */
function mostOf({ strings, tensors }: ITrace, role?: string): string | undefined {
  const counts = new Map<number, number>();
  tensors.dtype.forEach((dtype, tensor) => {
    if (role === undefined || strings[tensors.role[tensor]] === role) {
      counts.set(dtype, (counts.get(dtype) ?? 0) + 1);
    }
  });
  const floating = [...counts].filter(([dtype]) => FLOATING.test(strings[dtype]));
  return strings[floating.sort(([, a], [, b]) => b - a)[0]?.[0]];
}
