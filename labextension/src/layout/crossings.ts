/**
 * Data that crosses devices between modules: from the module that made it to the first that uses it on the other side.
 */
import { listed, moduleOf, type ITrace } from '../model/trace';

export interface ICrossing {
  /** Modules; -1: outside of any. */
  readonly source: number;
  readonly target: number;
  /** Devices. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

/** Views and additions between two modules that are followed before giving up. */
const MOST_STEPS = 16;

export function crossings(trace: ITrace): ICrossing[] {
  const { copies } = trace;
  if (copies.length === 0) {
    return [];
  }
  const flow = new Flow(trace);
  const stateRoles = new Set(['parameter', 'buffer'].map(role => trace.strings.indexOf(role)));
  const crossing = Array.from({ length: copies.length }, (_, copy) => copy).filter(
    copy => !isMove(trace, copy, stateRoles)
  );
  return crossing.map(copy => {
    const op = copies.op[copy];
    return {
      source: op < 0 ? -1 : flow.sourceOf(op, copies.source[copy]),
      target: op < 0 ? -1 : flow.targetOf(op),
      from: copies.from[copy],
      to: copies.to[copy],
      bytes: copies.bytes[copy]
    };
  });
}

/** `model.to(device)` takes a module elsewhere: no data that crosses between modules. A weight that a call copies is. */
function isMove(trace: ITrace, copy: number, stateRoles: ReadonlySet<number>): boolean {
  const { op, source } = trace.copies;
  return source[copy] >= 0 && moduleOf(trace, op[copy]) < 0 && stateRoles.has(trace.tensors.role[source[copy]]);
}

class Flow {
  private readonly _user: Int32Array;
  private readonly _isContainer: Uint8Array;

  constructor(private readonly _trace: ITrace) {
    const { offsets, flat } = _trace.ops.inputs;
    this._user = new Int32Array(_trace.tensors.length).fill(-1);
    for (let op = _trace.ops.length - 1; op >= 0; op--) {
      for (let at = offsets[op]; at < offsets[op + 1]; at++) {
        this._user[flat[at]] = op;
      }
    }
    this._isContainer = new Uint8Array(_trace.modules.length);
    for (const parent of _trace.modules.parent) {
      if (parent >= 0) {
        this._isContainer[parent] = 1;
      }
    }
  }

  /** The module that made what a copy carries; other ops are followed by their first input. */
  sourceOf(copy: number, carried: number): number {
    return this._follow(copy, op => {
      const [input = -1] = op === copy ? [carried] : listed(this._trace.ops.inputs, op);
      return input < 0 ? -1 : this._trace.tensors.producer[input];
    });
  }

  targetOf(copy: number): number {
    return this._follow(copy, op => {
      const [output = -1] = listed(this._trace.ops.outputs, op);
      const user = output < 0 ? -1 : this._user[output];
      return user > op ? user : -1;
    });
  }

  /** Goes from op to op until one belongs to another module than the one whose own code copies. */
  private _follow(copy: number, next: (op: number) => number): number {
    const base = moduleOf(this._trace, copy);
    if (base >= 0 && this._isContainer[base] === 0) {
      return base;
    }
    let op = next(copy);
    for (let step = 0; step < MOST_STEPS && op >= 0; step++) {
      const module = moduleOf(this._trace, op);
      if (module !== base) {
        return module;
      }
      op = next(op);
    }
    return -1;
  }
}
