/**
 * Filters of ops. Each distinct string is looked at once, so that a million ops cost integer look-ups only.
 */
import { deviceName, type ITrace } from '../model/trace';

export interface IFilter {
  readonly text: string;
  /** Ids; null: any. */
  readonly device: number | null;
  readonly module: number | null;
  readonly source: { readonly file: string; readonly line: number } | null;
}

export const EVERYTHING: IFilter = { text: '', device: null, module: null, source: null };

type Test = (op: number) => boolean;

/** The ops that pass, in the order of the trace. */
export function filterOps(trace: ITrace, filter: IFilter): Uint32Array {
  const tests = testsOf(trace, filter);
  const passed = new Uint32Array(trace.ops.length);
  let count = 0;
  for (let op = 0; op < passed.length; op++) {
    if (tests.every(test => test(op))) {
      passed[count++] = op;
    }
  }
  return passed.subarray(0, count);
}

function testsOf(trace: ITrace, filter: IFilter): Test[] {
  const tests: Test[] = filter.text
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
    .map(word => wordTest(trace, word));
  if (filter.device !== null) {
    tests.push(op => trace.ops.device[op] === filter.device);
  }
  if (filter.module !== null) {
    const inside = callsInside(trace, filter.module);
    tests.push(op => trace.ops.call[op] >= 0 && inside[trace.ops.call[op]] === 1);
  }
  if (filter.source !== null) {
    const sites = sitesOn(trace, filter.source.file, filter.source.line);
    tests.push(op => trace.ops.site[op] >= 0 && sites[trace.ops.site[op]] === 1);
  }
  return tests;
}

/** A word is looked for in the op's name, kind, phase, device, module and line. */
function wordTest(trace: ITrace, word: string): Test {
  const hit = Uint8Array.from(trace.strings, text => (text.toLowerCase().includes(word) ? 1 : 0));
  const { modules, calls, sites, ops } = trace;
  const devices = Uint8Array.from({ length: trace.devices.length }, (_, device) =>
    deviceName(trace, device).toLowerCase().includes(word) ? 1 : 0
  );
  const ofModule = modules.path.map((path, i) => hit[path] | hit[modules.type[i]]);
  const ofCall = calls.module.map(module => ofModule[module] ?? 0);
  const ofSite = sites.text.map((text, i) => hit[text] | hit[sites.file[i]] | hit[sites.function[i]]);
  return op =>
    (hit[ops.name[op]] |
      hit[ops.kind[op]] |
      hit[ops.phase[op]] |
      devices[ops.device[op]] |
      ofCall[ops.call[op]] |
      ofSite[ops.site[op]]) ===
    1;
}

/** By call: 1 when it runs the module or lies within a call that does. */
function callsInside(trace: ITrace, module: number): Uint8Array {
  const { module: ran, parent, length } = trace.calls;
  const inside = new Uint8Array(length);
  for (let call = 0; call < length; call++) {
    inside[call] = ran[call] === module || (parent[call] >= 0 && inside[parent[call]] === 1) ? 1 : 0;
  }
  return inside;
}

/** By site: 1 when it, or the user's line that led to it, lies on the line. */
function sitesOn(trace: ITrace, file: string, line: number): Uint8Array {
  const { sites, strings } = trace;
  const on = new Uint8Array(sites.length);
  for (let site = 0; site < sites.length; site++) {
    const own = strings[sites.file[site]] === file && sites.line[site] === line;
    const { [site]: caller } = sites.caller;
    const called = caller >= 0 && strings[sites.file[caller]] === file && sites.line[caller] === line;
    on[site] = own || called ? 1 : 0;
  }
  return on;
}
