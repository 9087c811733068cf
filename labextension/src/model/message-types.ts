/**
 * Made from messages.json by tools/message_types.py: not edited by hand.
 */
import type { JsonObject } from './findings';

export interface IState {
  readonly tracing: boolean;
  readonly simulated: number;
  readonly max_ops: number;
  readonly running: boolean;
}

export interface ILive {
  readonly label: string;
  readonly cell: string;
  readonly seconds: number;
  readonly ops: number;
  readonly copies: number;
  readonly copied: number;
  readonly devices: readonly ILiveDevice[];
}

export interface ILiveDevice {
  readonly device: string;
  readonly simulated: boolean;
  readonly ops: number;
  readonly bytes: number;
}

export interface ITraced {
  readonly trace: number;
  readonly label: string;
  readonly cell: string;
  readonly seconds: number;
  readonly ops: number;
  readonly outline: JsonObject;
}

export interface IInventory {
  readonly devices: readonly IDeviceTotal[];
  readonly holdings: readonly IHolding[];
  readonly left_out: number;
  readonly cut: boolean;
}

export interface IDeviceTotal {
  readonly device: string;
  readonly simulated: boolean;
  readonly tensors: number;
  readonly parameters: number;
  readonly bytes: number;
  readonly memory?: IDeviceMemory;
}

export interface IDeviceMemory {
  readonly used: number;
  readonly highest: number;
  readonly limit: number;
  readonly holders: readonly IHolder[];
}

export interface IHolder {
  readonly what: string;
  readonly bytes: number;
}

export interface IHolding {
  readonly kind: 'model' | 'optimizer' | 'tensor';
  readonly name: string;
  readonly names: readonly string[];
  readonly type: string;
  readonly devices: readonly IDeviceShare[];
  readonly shape?: readonly number[];
  readonly dtype?: string;
  readonly main?: string;
  readonly parts?: readonly IPart[];
  readonly parts_left_out?: number;
}

export interface IPart {
  readonly path: string;
  readonly kind: 'module' | 'parameter' | 'buffer' | 'attribute' | 'unregistered';
  readonly type: string;
  readonly devices: readonly IDeviceShare[];
  readonly shape?: readonly number[];
  readonly dtype?: string;
}

export interface ICellText {
  readonly cell: string;
  readonly source: string;
}

export interface IFixing {
  readonly state: 'running' | 'proven' | 'tried' | 'left' | 'failed' | 'cancelled';
  readonly round: number;
  readonly cells: readonly string[];
  readonly cell: string;
  readonly bugs: readonly IFixedBug[];
  readonly closing: string;
  readonly changed: readonly IChangedCell[];
  readonly run: readonly string[];
  readonly needed: readonly string[];
  readonly left?: IFixedBug;
}

export interface IFixedBug {
  readonly cell: string;
  readonly line: number;
  readonly message: string;
  readonly help: string;
  readonly hunks: readonly IHunk[];
}

export interface IHunk {
  readonly cell: string;
  readonly file: string;
  readonly line: number;
  readonly before: string;
  readonly after: string;
}

export interface IChangedCell {
  readonly cell: string;
  readonly before: string;
  readonly after: string;
}

export interface IDeviceShare {
  readonly device: string;
  readonly tensors: number;
  readonly parameters: number;
  readonly bytes: number;
}

export interface IToKernel {
  readonly hello: {
    readonly request: number;
    readonly protocol: number;
    readonly visible: boolean;
  };
  readonly show: {
    readonly request: number;
    readonly visible: boolean;
  };
  readonly language: {
    readonly request: number;
    readonly tag: string;
  };
  readonly trace_cells: {
    readonly request: number;
    readonly on: boolean;
  };
  readonly trace_next: {
    readonly request: number;
    readonly cell: string;
  };
  readonly simulate: {
    readonly request: number;
    readonly devices: number;
  };
  readonly limit: {
    readonly request: number;
    readonly max_ops: number;
  };
  readonly explain: {
    readonly request: number;
    readonly on: boolean;
  };
  readonly fetch: {
    readonly request: number;
    readonly trace: number;
  };
  readonly export: {
    readonly request: number;
    readonly trace: number;
    readonly form: 'html' | 'perfetto';
  };
  readonly fix: {
    readonly request: number;
    readonly cells: readonly ICellText[];
    readonly last?: string;
    readonly one?: boolean;
  };
  readonly cancel_fix: {
    readonly request: number;
  };
}

export interface IToPanel {
  readonly welcome: {
    readonly request: number;
    readonly protocol: number;
    readonly version: string;
    readonly folder: string;
    readonly fresh: boolean;
  };
  readonly done: {
    readonly request: number;
  };
  readonly refused: {
    readonly request: number;
    readonly reason: string;
  };
  readonly update: {
    readonly state?: IState;
    readonly live?: ILive;
    readonly traces?: readonly ITraced[];
    readonly kept?: readonly number[];
    readonly inventory?: IInventory;
    readonly fixing?: IFixing;
  };
  readonly trace: {
    readonly request: number;
    readonly data: JsonObject;
  };
  readonly file: {
    readonly request: number;
    readonly name: string;
    readonly text: string;
  };
}

export interface IToView {
  readonly begin: {
    readonly title: string;
  };
  readonly append: {
    readonly length: number;
    readonly columns: ReadonlyArray<readonly string[]>;
    readonly names: readonly string[];
    readonly devices: readonly string[];
    readonly threads: readonly string[];
    readonly simulated: readonly string[];
    readonly ops: number;
    readonly seconds: number;
    readonly copies: number;
    readonly copied: number;
    readonly counts: Readonly<Record<string, readonly number[]>>;
  };
  readonly end: {
    readonly ops: number;
    readonly seconds: number;
  };
  readonly idle: object;
}

export interface IFromView {
  readonly ready: object;
  readonly stop: object;
}
