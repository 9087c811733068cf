/**
 * What a report in a cell's output can do for its user. The renderer and the panel are two plugins; this is where they meet, and where
 * the panel is switched off a report stands alone.
 */
import type { ITrace } from '../model/trace';
import type { IHost } from '../view/selection';

type HostOf = (trace: ITrace, element: Element) => IHost;

let current: HostOf | null = null;

export function setHost(hostOf: HostOf): void {
  current = hostOf;
}

export function hostFor(trace: ITrace, element: Element): IHost {
  return current?.(trace, element) ?? {};
}
