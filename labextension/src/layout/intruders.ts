/**
 * The moment that a report is about: a tensor of one device that enters an op on another, from lane to lane.
 */
import { deviceByName, type ITrace } from '../model/trace';
import { MOST_INTRUDERS, type ILanes } from './lanes';

export interface IIntruder {
  readonly finding: number;
  readonly op: number;
  readonly from: number;
  readonly to: number;
  /** The tensor's name. */
  readonly name: string;
}

export function intruders(trace: ITrace, lanes: ILanes): IIntruder[] {
  const found: IIntruder[] = [];
  (trace.findings ?? []).slice(0, MOST_INTRUDERS).forEach(({ op, culprit }, finding) => {
    const to = op < 0 ? -1 : lanes.laneOf[op];
    const from = op < 0 || !culprit ? -1 : lanes.find(trace.ops.thread[op], deviceByName(trace, culprit.device));
    if (culprit && from >= 0 && to >= 0 && from !== to) {
      found.push({ finding, op, from, to, name: culprit.name });
    }
  });
  return found;
}
