/**
 * Which ops ran under `torch.autocast`: the mirror of `autocasts_of_ops` in trace/views.py.
 */
import { deviceName, type ITrace } from './trace';

/** The region that each op was cast in, -1 for none. */
export function autocastOfOps(trace: ITrace): Int32Array {
  const found = new Int32Array(trace.ops.length).fill(-1);
  for (let region = 0; region < trace.autocasts.length; region++) {
    for (let op = trace.autocasts.begin[region]; op < trace.autocasts.end[region]; op++) {
      if (isOf(trace, region, op)) {
        found[op] = trace.autocasts.enabled[region] > 0 ? region : -1;
      }
    }
  }
  return found;
}

/** The region that an op was cast in, the innermost one for its kind of device; -1 for none. */
export function autocastAt(trace: ITrace, op: number): number {
  const { begin, end, enabled, length } = trace.autocasts;
  for (let region = length - 1; region >= 0; region--) {
    if (begin[region] <= op && op < end[region] && isOf(trace, region, op)) {
      return enabled[region] > 0 ? region : -1;
    }
  }
  return -1;
}

function isOf(trace: ITrace, region: number, op: number): boolean {
  const { autocasts, ops, strings } = trace;
  const [kind] = deviceName(trace, ops.device[op]).split(':');
  return ops.thread[op] === autocasts.thread[region] && kind === strings[autocasts.device[region]];
}

/** `bfloat16` */
export function autocastDtype({ autocasts, strings }: ITrace, region: number): string {
  return region < 0 ? '' : strings[autocasts.dtype[region]];
}
