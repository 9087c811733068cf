/**
 * The culprits of findings as arrows: each from the lane of its tensor's device into the lane of the op that it entered.
 */
import { deviceByName, type ITrace } from '../model/trace';
import { MOST_CULPRITS, type ILanes } from './lanes';

export interface ICulpritLanes {
  readonly finding: number;
  readonly op: number;
  readonly from: number;
  readonly to: number;
  /** The tensor's name. */
  readonly name: string;
}

export function culpritLanes(trace: ITrace, lanes: ILanes): ICulpritLanes[] {
  const found: ICulpritLanes[] = [];
  (trace.findings ?? []).slice(0, MOST_CULPRITS).forEach(({ op, culprit }, finding) => {
    const to = op < 0 ? -1 : lanes.laneOf[op];
    const from = op < 0 || !culprit ? -1 : lanes.find(trace.ops.thread[op], deviceByName(trace, culprit.device));
    if (culprit && from >= 0 && to >= 0 && from !== to) {
      found.push({ finding, op, from, to, name: culprit.name });
    }
  });
  return found;
}
