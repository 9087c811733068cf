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
  const found = usual.get(trace) ?? mostOf(trace, parametersOf(trace)) ?? mostOf(trace, trace.tensors.dtype) ?? '';
  usual.set(trace, found);
  return found;
}

/** The dtype of each parameter, by its name: what it was before a cast is another row of the same name. */
function parametersOf({ strings, tensors }: ITrace): Iterable<number> {
  const last = new Map<number, number>();
  tensors.dtype.forEach((dtype, tensor) => {
    if (strings[tensors.role[tensor]] === 'parameter') {
      last.set(tensors.name[tensor], dtype);
    }
  });
  return last.values();
}

/** The floating dtype that comes most often. */
function mostOf({ strings }: ITrace, dtypes: Iterable<number>): string | undefined {
  const counts = new Map<number, number>();
  for (const dtype of dtypes) {
    if (FLOATING.test(strings[dtype])) {
      counts.set(dtype, (counts.get(dtype) ?? 0) + 1);
    }
  }
  return strings[[...counts].sort(([, a], [, b]) => b - a)[0]?.[0]];
}
