/**
 * The order in which devices are shown, everywhere the same: the CPU first, then each kind by index (palette.py has the same).
 */
import { deviceName, type ITrace } from '../model/trace';

const KINDS = ['cpu', 'cuda', 'mps', 'xpu', 'other', 'meta'];

/** The ids of a trace's devices in their order. */
export function devicesInOrder(trace: ITrace): number[] {
  const keys = Array.from({ length: trace.devices.length }, (_, device) => sortKey(deviceName(trace, device)));
  return [...keys.keys()].sort((a, b) => keys[a][0] - keys[b][0] || keys[a][1] - keys[b][1] || a - b);
}

function sortKey(name: string): readonly [kind: number, index: number] {
  const [kind, index = ''] = name.split(':');
  const at = KINDS.indexOf(kind);
  return [at < 0 ? KINDS.indexOf('other') : at, /^\d{1,6}$/.test(index) ? Number(index) : 0];
}
