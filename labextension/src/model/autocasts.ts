/**
 * Which ops ran under `torch.autocast`: the mirror of `autocasts_of_ops` in trace/views.py.
 */
import { deviceName, type ITrace } from './trace';

const known = new WeakMap<ITrace, string[]>();

/** By op the dtype that it was cast to, as the innermost region for its kind of device says; where it was not, a hole. */
export function autocastOfOps(trace: ITrace): ReadonlyArray<string | undefined> {
  const found = known.get(trace) ?? [];
  if (!known.has(trace)) {
    const { autocasts, ops, strings } = trace;
    known.set(trace, found);
    autocasts.begin.forEach((begin, region) => {
      for (let op = begin; op < autocasts.end[region]; op++) {
        const [kind] = deviceName(trace, ops.device[op]).split(':');
        if (ops.thread[op] === autocasts.thread[region] && kind === strings[autocasts.device[region]]) {
          found[op] = autocasts.enabled[region] > 0 ? strings[autocasts.dtype[region]] : '';
        }
      }
    });
  }
  return found;
}
