/**
 * The order in which devices are shown, everywhere the same: the CPU first, then each kind by index (palette.py has the same).
 */
import { deviceName, type ITrace } from '../model/trace';

const KINDS = ['cpu', 'cuda', 'mps', 'xpu', 'meta'];

/** The ids of a trace's devices in their order. */
export function devicesInOrder(trace: ITrace): number[] {
  const places = Array.from({ length: trace.devices.length }, (_, device) => placeOf(deviceName(trace, device)));
  return [...places.keys()].sort((a, b) => places[a][0] - places[b][0] || places[a][1] - places[b][1] || a - b);
}

function placeOf(name: string): readonly [kind: number, index: number] {
  const [kind, index = ''] = name.split(':');
  const at = KINDS.indexOf(kind);
  return [at < 0 ? KINDS.length : at, /^\d{1,6}$/.test(index) ? Number(index) : 0];
}
