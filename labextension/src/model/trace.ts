/**
 * The trace in the browser: columns as typed arrays, read by id and never changed. No object is made per op.
 */
import type { Tables } from './columns';
import type { IFinding } from './findings';
import { sentence, type Language } from './words/catalogue';

/** The phases that have a name; all else is other work. */
export const PHASES = ['forward', 'backward', 'optimizer'] as const;

export const MIME_TYPE = 'application/vnd.devtrace.v1+json';

export interface ITrace extends Tables {
  readonly title: string;
  readonly recorded: string;
  readonly producer: string;
  /** Ops that were folded away; the ledger counts them still. */
  readonly truncated: number;
  readonly notes: readonly string[];
  /** It ended, used an accelerator and left nothing of a model elsewhere; its findings may say otherwise. */
  readonly allClear: boolean;
  /** A sentence on how the program failed, "" if it did not or a finding is about it. */
  readonly closing: string;
  /** What `readMemory` reads: a curve for each accelerator that held enough to be looked at. */
  readonly memory: readonly unknown[];
  readonly strings: readonly string[];
  /** null: no diagnosis was made. */
  readonly findings: readonly IFinding[] | null;
  /** In which it was diagnosed, and is shown. */
  readonly language: Language;
}

/** The module that runs an op, -1 outside of any. */
export function moduleOf(trace: ITrace, op: number): number {
  const call = trace.ops.call[op];
  return call < 0 ? -1 : trace.calls.module[call];
}

export function deviceName(trace: ITrace, device: number): string {
  return device < 0 ? '' : trace.strings[trace.devices.name[device]];
}

/** A device as it is named to a reader, who is told where there is none. */
export function deviceOrNone(trace: ITrace, device: number): string {
  return deviceName(trace, device) || sentence(trace.language, 'device.none');
}

/** The id of a device by name, -1 when the trace has none of it. */
export function deviceByName(trace: ITrace, name: string): number {
  return trace.devices.name.findIndex(id => trace.strings[id] === name);
}

export function opName(trace: ITrace, op: number): string {
  return trace.strings[trace.ops.name[op]];
}

export function modulePath(trace: ITrace, module: number): string {
  return module < 0 ? '' : trace.strings[trace.modules.path[module]];
}

/** `In[7] line 6`, or the file's last name and its line. */
export function siteLabel(trace: ITrace, site: number): string {
  if (site < 0) {
    return '';
  }
  const source = sourceLabel(trace.sites.cell[site], trace.strings[trace.sites.file[site]]);
  return sentence(trace.language, 'site.line', { source, line: String(trace.sites.line[site]) });
}

export function sourceLabel(cell: number, file: string): string {
  const name = file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1);
  // marimo runs each cell as a file of its own, named by its id of the cell.
  const marimo = /^__marimo__cell_(\w+)_\.py$/.exec(name)?.[1];
  return cell >= 0 ? `In[${cell}]` : marimo === undefined ? name : `cell-${marimo}`;
}

/** The user's own line for a site: itself, or the caller of one in a package. */
export function userSite(trace: ITrace, site: number): number {
  const caller = site < 0 ? -1 : trace.sites.caller[site];
  return caller < 0 ? site : caller;
}

/** `[4, 128] float32` */
export function tensorLabel(trace: ITrace, tensor: number): string {
  const { offsets, flat } = trace.shapes.dims;
  const shape = trace.tensors.shape[tensor];
  const dims = shape < 0 ? '?' : Array.from(flat.subarray(offsets[shape], offsets[shape + 1])).join(', ');
  return `[${dims}] ${trace.strings[trace.tensors.dtype[tensor]]}`;
}

/** The ids that a row of a list column holds. */
export function listed(column: { offsets: Int32Array | Float64Array; flat: Int32Array | Float64Array }, row: number) {
  return column.flat.subarray(column.offsets[row], column.offsets[row + 1]);
}
