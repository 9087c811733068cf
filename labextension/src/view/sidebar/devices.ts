/**
 * What the notebook's names hold, by device: how much of it is where, then every model, optimizer and tensor. A model on several devices
 * comes first, with the parts that lie elsewhere.
 */
import { formatMemory } from '../../layout/memory';
import { formatBytes, formatCount } from '../../layout/units';
import type { IDeviceMemory, IDeviceShare, IDeviceTotal, IHolding, IInventory, IPart } from '../../model/messages';
import type { ISidebar } from '../../model/sidebar';
import { joined, sentence, type Language } from '../../model/words/catalogue';
import { withCode } from '../chips';
import { h } from '../dom';
import { barOf, chipOf, swatchOf } from './device';
import type { IDrawing } from './drawing';
import { folding } from './section';

const KINDS = [
  ['model', 'held.models'],
  ['optimizer', 'held.optimizers'],
  ['tensor', 'held.tensors']
] as const;
const PARTS = {
  parameter: 'held.parameter',
  buffer: 'held.buffer',
  attribute: 'held.attribute',
  unregistered: 'held.unregistered'
} as const;

export function drawDevices({ inventory }: ISidebar, drawing: IDrawing): void {
  const { body, language } = drawing;
  if (inventory === null || inventory.devices.length === 0) {
    const text = sentence(language, inventory === null ? 'held.later' : 'held.nothing');
    body.append(h(body, 'p', { class: 'dt-none', text }));
    return;
  }
  const mixed = inventory.holdings.filter(({ devices }) => devices.length > 1);
  if (mixed.length > 0) {
    const label = sentence(language, 'held.mixed');
    const list = h(body, 'ul', { class: 'dt-side-list', aria: { label } });
    list.append(...mixed.map(holding => h(body, 'li', {}, mixedRow(holding, drawing))));
    body.append(h(body, 'h4', { text: label }), list);
  }
  body.append(...inventory.devices.map(device => deviceFold(device, inventory, drawing)));
  const left = [
    ...(inventory.left_out > 0 ? [sentence(language, 'held.left-out', { count: inventory.left_out })] : []),
    ...(inventory.cut ? [sentence(language, 'held.cut')] : [])
  ];
  body.append(...left.map(text => h(body, 'p', { class: 'dt-none', text })));
}

/** One device of those in the inventory, with all that is on this device alone. */
function deviceFold(total: IDeviceTotal, { devices: all, holdings }: IInventory, drawing: IDrawing): HTMLElement {
  const { body, language } = drawing;
  const { device: name, simulated, tensors, bytes: size } = total;
  const most = Math.max(1, ...all.map(({ bytes }) => bytes));
  const only = holdings.filter(({ devices }) => devices.length === 1 && devices[0].device === name);
  const summary = [
    chipOf(body, name, simulated),
    barOf(body, name, size / most),
    h(body, 'span', { class: 'dt-number', text: formatBytes(size) }),
    h(body, 'span', { class: 'dt-faint dt-number', text: sentence(language, 'count.tensors', { count: tensors }) })
  ];
  const fill = (into: HTMLElement): void => {
    if (total.memory !== undefined) {
      into.append(memoryOf(name, total.memory, drawing));
    }
    for (const [kind, key] of KINDS) {
      const rows = only.filter(holding => holding.kind === kind);
      if (rows.length > 0) {
        into.append(h(into, 'h4', { text: sentence(language, key) }), listOf(rows, drawing));
      }
    }
    if (only.length === 0 && tensors > 0) {
      into.append(h(into, 'p', { class: 'dt-none', text: sentence(language, 'held.parts') }));
    }
  };
  const fold = folding(drawing, { key: `device-${name}`, isOpen: true, summary, fill });
  fold.classList.add('dt-side-device');
  fold.dataset['device'] = name;
  return fold;
}

/** `44.5 MiB of 64.0 MiB in use, at most 60.0 MiB`, and below who holds most of it. */
function memoryOf(device: string, memory: IDeviceMemory, { body, language }: IDrawing): HTMLElement {
  const { used, highest, limit, holders } = memory;
  const sizes = { size: formatMemory(used), highest: formatMemory(highest), limit: formatMemory(limit) };
  const rows = holders.map(({ what, bytes }) => {
    const text = h(body, 'span', { class: 'dt-side-what' }, ...withCode(body, what));
    const size = h(body, 'span', { class: 'dt-number', text: formatMemory(bytes) });
    return h(body, 'li', { class: 'dt-side-held' }, text, size);
  });
  const label = sentence(language, 'held.most');
  return h(
    body,
    'div',
    { class: 'dt-side-memory', data: { memory: device } },
    h(body, 'p', { text: sentence(language, limit > 0 ? 'held.in-use-of' : 'held.in-use', sizes) }),
    ...(limit > 0 ? [barOf(body, device, used / limit)] : []),
    ...(rows.length > 0
      ? [h(body, 'h4', { text: label }), h(body, 'ul', { class: 'dt-side-list', aria: { label } }, ...rows)]
      : [])
  );
}

function listOf(rows: readonly IHolding[], { body, language }: IDrawing): HTMLElement {
  const items = rows.map(row => {
    const size = h(body, 'span', { class: 'dt-number', text: formatBytes(row.devices[0].bytes) });
    return h(body, 'li', { class: 'dt-side-held' }, ...nameAndWhat(language, body, row), size);
  });
  return h(body, 'ul', { class: 'dt-side-list' }, ...items);
}

/** `x   [128, 768] float32` */
function nameAndWhat(language: Language, body: HTMLElement, holding: IHolding): HTMLElement[] {
  const what = h(body, 'span', { class: 'dt-faint dt-side-what', text: whatOf(language, holding) });
  return [nameOf(language, body, holding), what];
}

function nameOf(language: Language, body: HTMLElement, { name, names }: IHolding): HTMLElement {
  const also = names.length > 0 ? sentence(language, 'held.also', { name, names: joined(language, names) }) : name;
  return h(body, 'code', { class: 'dt-side-holds', text: name, title: also });
}

function whatOf(language: Language, holding: IHolding): string {
  if (holding.kind === 'tensor') {
    return tensorOf(holding);
  }
  const parameters = holding.devices.reduce((sum, device) => sum + device.parameters, 0);
  return sentence(language, 'held.model', { type: holding.type, size: compact(parameters), count: parameters });
}

function tensorOf({ shape, dtype, type }: IHolding | IPart): string {
  const own = type === 'Tensor' || type === 'Parameter' ? '' : `${type} `;
  return `${own}${shape === undefined ? '' : `[${shape.join(', ')}]`} ${dtype ?? ''}`.trim();
}

/** `124 M`: a count of parameters is read by its size. */
function compact(count: number): string {
  return new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 }).format(count);
}

function mixedRow(holding: IHolding, drawing: IDrawing): HTMLElement {
  const { body, language } = drawing;
  const head = [
    h(body, 'span', { class: 'dt-side-mixed', text: '!', aria: { hidden: 'true' } }),
    ...nameAndWhat(language, body, holding),
    h(body, 'span', { class: 'dt-side-spread' }, ...holding.devices.map(device => share(language, body, device)))
  ];
  const parts = holding.parts ?? [];
  if (parts.length === 0) {
    return h(body, 'div', { class: 'dt-side-held dt-side-mixed-one', data: { name: holding.name } }, ...head);
  }
  const fill = (into: HTMLElement): void => {
    const rows = parts.map(part =>
      h(into, 'li', { class: 'dt-side-held', data: { part: part.path } }, ...partRow(language, into, part))
    );
    into.append(h(into, 'ul', { class: 'dt-side-list' }, ...rows));
    if (holding.parts_left_out) {
      const text = sentence(language, 'held.more-parts', { count: holding.parts_left_out });
      into.append(h(into, 'p', { class: 'dt-none', text }));
    }
  };
  const fold = folding(drawing, { key: `mixed-${holding.name}`, isOpen: true, summary: head, fill });
  fold.classList.add('dt-side-mixed-model');
  fold.dataset['name'] = holding.name;
  return fold;
}

/** `G0 19 tensors` */
function share(language: Language, body: HTMLElement, { device, tensors }: IDeviceShare): HTMLElement {
  const title = sentence(language, 'held.share', { count: tensors, device });
  return h(
    body,
    'span',
    { class: 'dt-side-share', title, data: { device } },
    swatchOf(body, device),
    h(body, 'span', { class: 'dt-number', text: formatCount(tensors), aria: { hidden: 'true' } }),
    h(body, 'span', { class: 'dt-hidden', text: title })
  );
}

/** `out_head   Linear   cpu` */
function partRow(language: Language, body: HTMLElement, part: IPart): Node[] {
  const { kind } = part;
  const what = kind === 'module' ? part.type : sentence(language, PARTS[kind], { what: tensorOf(part) }).trim();
  return [
    h(body, 'code', { class: 'dt-side-holds', text: part.path, title: part.path }),
    h(body, 'span', { class: 'dt-faint dt-side-what', text: what }),
    h(body, 'span', { class: 'dt-devices' }, ...part.devices.map(({ device }) => chipOf(body, device, false)))
  ];
}
