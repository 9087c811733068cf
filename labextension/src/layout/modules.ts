/**
 * The tree of modules in the order in which they ran, each with its ops, its time, and the devices of its parameters and of its ops.
 */
import type { ILists } from '../model/columns';
import { moduleOf, type ITrace } from '../model/trace';

export interface IModuleNode {
  readonly id: number;
  /** The last name of the path. */
  readonly name: string;
  readonly children: IModuleNode[];
  /** Ids, of its own parameters and buffers and of those below it. */
  readonly parameterDevices: ReadonlySet<number>;
  /** The dtypes of the same, as ids of strings. */
  readonly parameterDtypes: ReadonlySet<number>;
  /** Ids, of the ops of its calls and of those below it. */
  readonly opDevices: ReadonlySet<number>;
  readonly ops: number;
  /** Summed time of its ops, ns. */
  readonly time: number;
  /** It, something in it or its parameters were used. */
  readonly ran: boolean;
  /** The worst that a finding says of an op in it or below it: 0 nothing or a note, 1 a warning, 2 an error. */
  readonly alarm: number;
  /** The same of its own ops alone. */
  readonly ownAlarm: number;
}

type Draft = { -readonly [K in keyof IModuleNode]: IModuleNode[K] } & {
  parameterDevices: Set<number>;
  parameterDtypes: Set<number>;
  opDevices: Set<number>;
  first: number;
};

/** The roots, each with its modules below it. */
export function moduleTree(trace: ITrace): IModuleNode[] {
  const drafts = Array.from({ length: trace.modules.length }, (_, id) => newDraft(trace, id));
  findFirstCalls(trace, drafts);
  countOps(trace, drafts);
  addParameterDevices(trace, drafts);
  addAlarms(trace, drafts);
  return gather(trace, drafts);
}

function newDraft(trace: ITrace, id: number): Draft {
  const path = trace.strings[trace.modules.path[id]];
  return {
    id,
    name: path.slice(path.lastIndexOf('.') + 1),
    children: [],
    parameterDevices: new Set(),
    parameterDtypes: new Set(),
    opDevices: new Set(),
    ops: 0,
    time: 0,
    ran: trace.modules.ran[id] === 1,
    alarm: 0,
    ownAlarm: 0,
    first: Infinity
  };
}

function findFirstCalls(trace: ITrace, drafts: readonly Draft[]): void {
  const { module, length } = trace.calls;
  for (let call = 0; call < length; call++) {
    if (module[call] >= 0) {
      const draft = drafts[module[call]];
      draft.first = Math.min(draft.first, call);
    }
  }
}

function countOps(trace: ITrace, drafts: readonly Draft[]): void {
  const { duration, device, length } = trace.ops;
  for (let op = 0; op < length; op++) {
    const module = moduleOf(trace, op);
    if (module >= 0) {
      const draft = drafts[module];
      draft.ops++;
      draft.time += Math.max(duration[op], 0);
      if (device[op] >= 0) {
        draft.opDevices.add(device[op]);
      }
    }
  }
}

/**
 * Each parameter and buffer counts for its device when its module last ran, or without a call when it was last seen. So a module that was
 * moved counts for the device that it was moved to.
 */
function addParameterDevices(trace: ITrace, drafts: readonly Draft[]): void {
  const devices = new ParameterDevices(trace, drafts);
  for (const isCalled of [true, false]) {
    for (let op = trace.ops.length - 1; op >= 0; op--) {
      const user = moduleOf(trace, op);
      if (user >= 0 === isCalled) {
        devices.addAll(trace.ops.outputs, op, user);
        devices.addAll(trace.ops.inputs, op, user);
      }
    }
  }
}

/** A parameter or buffer belongs to the module whose path its name continues by one name, first sought below the module that used it. */
class ParameterDevices {
  private readonly _roles: ReadonlySet<number>;
  private readonly _isSeen: Uint8Array;
  private readonly _paths: Paths;
  private readonly _known = new Set<number>();

  constructor(
    private readonly _trace: ITrace,
    private readonly _drafts: readonly Draft[]
  ) {
    const { strings, tensors } = _trace;
    this._roles = new Set(['parameter', 'buffer'].map(role => strings.indexOf(role)));
    this._isSeen = new Uint8Array(tensors.length);
    this._paths = new Paths(_trace);
  }

  addAll({ offsets, flat }: ILists, op: number, user: number): void {
    for (let at = offsets[op]; at < offsets[op + 1]; at++) {
      if (this._isSeen[flat[at]] === 0 && this._roles.has(this._trace.tensors.role[flat[at]])) {
        this._isSeen[flat[at]] = 1;
        this._add(flat[at], user);
      }
    }
  }

  /** Several tensors may have had one name, one after the other: the first to come here counts. */
  private _add(tensor: number, user: number): void {
    const { strings, tensors } = this._trace;
    const name = tensors.name[tensor];
    const owner = this._paths.ownerOf(strings[name], user);
    const key = (owner ?? 0) * strings.length + name;
    if (owner !== undefined && !this._known.has(key)) {
      this._known.add(key);
      if (tensors.device[tensor] >= 0) {
        this._drafts[owner].parameterDevices.add(tensors.device[tensor]);
      }
      this._drafts[owner].parameterDtypes.add(tensors.dtype[tensor]);
    }
  }
}

/** Modules by their paths; strings are compared by id, as a path may be long and be that of many rows. */
class Paths {
  private readonly _ids = new Map<string, number>();
  private readonly _byPath = new Map<number, number>();
  private readonly _below = new Map<string, number>();

  constructor(private readonly _trace: ITrace) {
    const { path, parent, length } = _trace.modules;
    for (let id = 0; id < length; id++) {
      this._ids.set(_trace.strings[path[id]], path[id]);
      this._byPath.set(path[id], id);
      this._below.set(`${parent[id]} ${path[id]}`, id);
    }
  }

  /** Two models may have one name: what a module uses is sought in its own tree, then among all. */
  ownerOf(tensor: string, user: number): number | undefined {
    const path = tensor.slice(0, tensor.lastIndexOf('.'));
    return this._descend(path, user) ?? this._byPath.get(this._ids.get(path) ?? -1);
  }

  private _descend(path: string, module: number): number | undefined {
    let at: number | undefined = module < 0 ? undefined : module;
    let here = module < 0 ? '' : this._trace.strings[this._trace.modules.path[module]];
    while (at !== undefined && here !== path && path.startsWith(`${here}.`)) {
      const end = path.indexOf('.', here.length + 1);
      here = end < 0 ? path : path.slice(0, end);
      at = this._below.get(`${at} ${this._ids.get(here) ?? -1}`);
    }
    return here === path ? at : undefined;
  }
}

function addAlarms(trace: ITrace, drafts: readonly Draft[]): void {
  for (const { ops, severity } of trace.findings ?? []) {
    for (const op of severity === 'note' ? [] : ops) {
      const module = op < 0 ? -1 : moduleOf(trace, op);
      if (module >= 0) {
        drafts[module].ownAlarm = Math.max(drafts[module].ownAlarm, severity === 'error' ? 2 : 1);
      }
    }
  }
  for (const op of trace.errors.op) {
    const module = op < 0 ? -1 : moduleOf(trace, op);
    if (module >= 0) {
      drafts[module].ownAlarm = 2;
    }
  }
}

/** Hangs each module below its parent, adds what it did to it, and puts children in the order of their first calls. */
function gather(trace: ITrace, drafts: readonly Draft[]): IModuleNode[] {
  const roots: Draft[] = [];
  const { above, order } = shapeOf(trace);
  for (const draft of drafts) {
    (above[draft.id] >= 0 ? drafts[above[draft.id]].children : roots).push(draft);
  }
  for (const id of order) {
    const draft = drafts[id];
    draft.children.sort((a, b) => byFirst(a as Draft, b as Draft));
    draft.ran ||= draft.parameterDtypes.size > 0;
    draft.alarm = Math.max(draft.alarm, draft.ownAlarm);
    if (above[id] >= 0) {
      addTo(drafts[above[id]], draft);
    }
  }
  return roots.sort(byFirst);
}

function byFirst(a: Draft, b: Draft): number {
  return a.first === b.first ? a.id - b.id : a.first - b.first;
}

function addTo(parent: Draft, draft: Draft): void {
  draft.parameterDevices.forEach(device => parent.parameterDevices.add(device));
  draft.parameterDtypes.forEach(dtype => parent.parameterDtypes.add(dtype));
  draft.opDevices.forEach(device => parent.opDevices.add(device));
  parent.ops += draft.ops;
  parent.time += draft.time;
  parent.first = Math.min(parent.first, draft.first);
  parent.ran ||= draft.ran;
  parent.alarm = Math.max(parent.alarm, draft.alarm);
}

/** Deeper trees are drawn as if they were this deep, so that walking them needs no deep stack. */
const DEEPEST = 50;

/** By module what it hangs below (-1: nothing, or a circle), and all modules with the deepest first. */
function shapeOf(trace: ITrace): { above: Int32Array; order: number[] } {
  const { parent, length } = trace.modules;
  const above = new Int32Array(length).fill(-1);
  const depth = new Int32Array(length).fill(-1);
  const settle = (id: number, low: number): void => {
    const below = low >= 0 && depth[low] >= DEEPEST ? above[low] : low;
    above[id] = below;
    depth[id] = below < 0 ? 0 : depth[below] + 1;
  };
  for (let id = 0; id < length; id++) {
    const path: number[] = [];
    let at = id;
    for (; at >= 0 && depth[at] < 0 && path.length <= length; at = parent[at]) {
      path.push(at);
    }
    let low = at;
    for (const next of path.length > length ? [id] : path.reverse()) {
      settle(next, path.length > length ? -1 : low);
      low = next;
    }
  }
  const order = Array.from({ length }, (_, id) => id).sort((a, b) => depth[b] - depth[a]);
  return { above, order };
}
