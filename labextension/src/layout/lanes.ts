/**
 * A lane for each device of each thread, so that no two ops of a lane overlap. Ops that do (a damaged clock, two native threads that
 * report as one) spill into a few more lanes of the same device; what overlaps even there is cut short.
 */
import { deviceByName, type ITrace } from '../model/trace';
import { devicesInOrder } from './devices';
import { buildTracks, type ITracks } from './tracks';

interface ILane {
  readonly thread: number;
  readonly device: number;
  /** 0, or which spill it is. */
  readonly spill: number;
}

export interface ILanes {
  readonly lanes: readonly ILane[];
  /** The lane of each op. */
  readonly laneOf: Int32Array;
  readonly tracks: ITracks;
  /** The first lane of a device in a thread, -1 when there is none. */
  find(thread: number, device: number): number;
}

const MOST_SPILLS = 3;

interface IDraft extends ILane {
  free: number;
  next: IDraft | null;
  id: number;
}

export function buildLanes(trace: ITrace, start: Float64Array, end: Float64Array): ILanes {
  const drafts = new Drafts();
  const { device, thread, length } = trace.ops;
  const drafted = new Int32Array(length);
  for (let op = 0; op < length; op++) {
    const lane = drafts.take(thread[op], device[op], start[op]);
    lane.free = end[op];
    drafted[op] = lane.id;
  }
  for (let copy = 0; copy < trace.copies.length; copy++) {
    const op = trace.copies.op[copy];
    if (op >= 0) {
      drafts.at(thread[op], trace.copies.from[copy]);
    }
  }
  // A culprit has a lane to come from, though nothing may have run there.
  for (const { op, culprit } of trace.findings ?? []) {
    if (op >= 0 && culprit) {
      drafts.at(thread[op], deviceByName(trace, culprit.device));
    }
  }
  const lanes = drafts.sorted(devicesInOrder(trace));
  const rank = new Int32Array(lanes.length);
  lanes.forEach((lane, i) => (rank[lane.id] = i));
  const laneOf = drafted.map(id => rank[id]);
  return {
    lanes,
    laneOf,
    tracks: buildTracks(laneOf, lanes.length, start, end),
    find: (thread, device) => {
      const draft = drafts.known(thread, device);
      return draft ? rank[draft.id] : -1;
    }
  };
}

/** Lanes in the order they are first needed; ops mostly need the one before them again. */
class Drafts {
  private _last: IDraft | null = null;
  private readonly _all: IDraft[] = [];
  private readonly _byKey = new Map<number, Map<number, IDraft>>();

  take(thread: number, device: number, start: number): IDraft {
    let lane = this.at(thread, device);
    while (lane.free > start && lane.spill < MOST_SPILLS) {
      lane.next ??= this._add(thread, device, lane.spill + 1);
      lane = lane.next;
    }
    return lane;
  }

  at(thread: number, device: number): IDraft {
    if (this._last?.thread !== thread || this._last.device !== device) {
      this._last = this.known(thread, device) ?? this._first(thread, device);
    }
    return this._last;
  }

  known(thread: number, device: number): IDraft | undefined {
    return this._byKey.get(thread)?.get(device);
  }

  /** By thread, then by the order of `devices`. */
  sorted(devices: readonly number[]): IDraft[] {
    const ranks = new Map(devices.map((device, i) => [device, i]));
    const rankOf = ({ device }: IDraft): number => ranks.get(device) ?? -1;
    return [...this._all].sort((a, b) => a.thread - b.thread || rankOf(a) - rankOf(b) || a.spill - b.spill);
  }

  private _first(thread: number, device: number): IDraft {
    const lane = this._add(thread, device, 0);
    const devices = this._byKey.get(thread) ?? new Map<number, IDraft>();
    this._byKey.set(thread, devices.set(device, lane));
    return lane;
  }

  private _add(thread: number, device: number, spill: number): IDraft {
    const lane = { thread, device, spill, free: -Infinity, next: null, id: this._all.length };
    this._all.push(lane);
    return lane;
  }
}
