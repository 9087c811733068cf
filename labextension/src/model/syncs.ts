/**
 * The ops that make the host wait for a device: the mirror of `waits` in trace/ledger_counts.py.
 */
import { deviceByName, type ITrace } from './trace';

/** The ids of the ops that wait. Reading a value that is the CPU's own waits for nothing. */
export function waitingOps(trace: ITrace): number[] {
  const sync = trace.strings.indexOf('sync');
  const cpu = deviceByName(trace, 'cpu');
  const { kind, device } = trace.ops;
  const waiting: number[] = [];
  for (let op = kind.indexOf(sync); op >= 0; op = kind.indexOf(sync, op + 1)) {
    if (device[op] >= 0 && device[op] !== cpu) {
      waiting.push(op);
    }
  }
  return waiting;
}
