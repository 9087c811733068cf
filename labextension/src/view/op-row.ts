/**
 * A row of the ops table: made once, filled again for each op that scrolls into it.
 */
import { opDuration, whereOpRan, phaseName } from '../layout/describe';
import type { SortKey } from '../layout/table';
import { formatCount } from '../layout/units';
import { deviceName, listed, modulePath, moduleOf, opName, siteLabel, tensorLabel, type ITrace } from '../model/trace';
import type { Key } from '../model/words/catalogue';
import { deviceLetter } from '../paint/palette';
import { deviceStyle } from './chips';
import { h } from './dom';

export const OP_COLUMNS = [
  { key: 'id', name: 'ops.number' },
  { key: 'name', name: 'ops.name' },
  { key: 'device', name: 'ops.device' },
  { key: 'took', name: 'ops.took' },
  { key: 'phase', name: 'ops.phase' },
  { key: 'module', name: 'ops.module' },
  { key: 'line', name: 'ops.line' }
] as const satisfies ReadonlyArray<{ readonly key: SortKey; readonly name: Key }>;

export interface IOpRow {
  readonly node: HTMLElement;
  readonly cells: readonly HTMLElement[];
  readonly swatch: HTMLElement;
  op: number;
  /** The device that it is dressed for; undefined before its first op. */
  device?: number;
}

/** No cell shows more letters: the rest would be laid out for nothing. */
const LONGEST = 160;

export function newRow(owner: Node, id: string): IOpRow {
  const swatch = h(owner, 'i', { class: 'dt-swatch', aria: { hidden: 'true' } });
  const cells = OP_COLUMNS.map(() => h(owner, 'span'));
  const slots = OP_COLUMNS.map(({ key }, i) => {
    const slot = h(owner, 'span', { class: `dt-op-${key}`, role: 'gridcell' });
    slot.append(...(key === 'device' ? [swatch, cells[i]] : [cells[i]]));
    return slot;
  });
  const node = h(owner, 'div', { class: 'dt-op-row', role: 'row', attributes: { id } }, ...slots);
  return { node, cells, swatch, op: -1 };
}

export function fillRow(row: IOpRow, trace: ITrace, op: number, index: number): void {
  row.node.setAttribute('aria-rowindex', String(index + 2));
  if (row.op === op) {
    return;
  }
  row.op = op;
  const device = trace.ops.device[op];
  const name = deviceName(trace, device);
  const texts = [
    formatCount(op),
    `${opName(trace, op)}${shapesOf(trace, op)}`,
    whereOpRan(trace, op),
    opDuration(trace, op),
    phaseName(trace, trace.strings[trace.ops.phase[op]]),
    modulePath(trace, moduleOf(trace, op)),
    lineOf(trace, op)
  ];
  texts.forEach((text, i) => {
    const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
    if (row.cells[i].textContent !== shown) {
      row.cells[i].textContent = shown;
    }
  });
  row.node.classList.toggle('dt-op-raised', trace.ops.duration[op] < 0);
  if (row.device !== device) {
    row.device = device;
    dress(row, name, device);
  }
}

function dress({ node, swatch }: IOpRow, name: string, device: number): void {
  node.dataset['device'] = name;
  swatch.hidden = device < 0;
  if (device >= 0) {
    swatch.textContent = deviceLetter(name);
    Object.entries(deviceStyle(device)).forEach(([property, value]) => swatch.style.setProperty(property, value));
  }
}

function shapesOf(trace: ITrace, op: number): string {
  const [first = -1] = listed(trace.ops.outputs, op);
  return first < 0 ? '' : `  → ${tensorLabel(trace, first)}`;
}

function lineOf(trace: ITrace, op: number): string {
  const site = trace.ops.site[op];
  return site < 0 ? '' : `${siteLabel(trace, site)}  ${trace.strings[trace.sites.text[site]]}`;
}
