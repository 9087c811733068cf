/**
 * What the notebook's names hold, by device: how much of it is where, then every model, optimizer and tensor. A model on several devices
 * comes first, with the parts that lie elsewhere.
 */
import { pluralize, formatBytes, formatCount } from '../../layout/units';
import type { IDeviceShare, IDeviceTotal, IHolding, IInventory, IPart } from '../../model/messages';
import type { ISidebar } from '../../model/sidebar';
import { button, h } from '../dom';
import { barOf, chipOf, swatchOf } from './device';
import type { IDrawing } from './drawing';
import { folding } from './section';

/** Rows of one device that are shown at once; more when asked for. */
const FIRST = 100;

const KINDS: Readonly<Record<IHolding['kind'], string>> = {
  model: 'Models',
  optimizer: 'Optimizers',
  tensor: 'Tensors'
};
const PART_KINDS: Readonly<Record<IPart['kind'], string>> = {
  module: '',
  parameter: 'parameter',
  buffer: 'buffer',
  attribute: 'plain attribute, not moved by .to()',
  unregistered: 'not registered, not moved by .to()'
};

export function drawDevices({ inventory }: ISidebar, drawing: IDrawing): void {
  const { body } = drawing;
  if (inventory === null || inventory.holdings.length === 0) {
    const text = inventory === null ? 'Listed when the kernel is idle.' : 'No name of this notebook holds a tensor.';
    body.append(h(body, 'p', { class: 'dt-none', text }));
    return;
  }
  const mixed = inventory.holdings.filter(({ devices }) => devices.length > 1);
  if (mixed.length > 0) {
    const list = h(body, 'ul', { class: 'dt-side-list', aria: { label: 'On several devices' } });
    list.append(...mixed.map(holding => h(body, 'li', {}, mixedRow(holding, drawing))));
    body.append(h(body, 'h4', { text: 'On several devices' }), list);
  }
  body.append(...inventory.devices.map(device => deviceFold(device, inventory, drawing)));
  const left = [
    ...(inventory.left_out > 0 ? [`${pluralize(inventory.left_out, 'smaller one')} not listed.`] : []),
    ...(inventory.cut ? ['Very long containers were not searched to their end.'] : [])
  ];
  body.append(...left.map(text => h(body, 'p', { class: 'dt-none', text })));
}

/** One device of those in the inventory, with all that is on this device alone. */
function deviceFold(total: IDeviceTotal, { devices: all, holdings }: IInventory, drawing: IDrawing): HTMLElement {
  const { body } = drawing;
  const { device: name, simulated, tensors, bytes: size } = total;
  const most = Math.max(1, ...all.map(({ bytes }) => bytes));
  const only = holdings.filter(({ devices }) => devices.length === 1 && devices[0].device === name);
  const summary = [
    chipOf(body, name, simulated),
    barOf(body, name, size / most),
    h(body, 'span', { class: 'dt-number', text: formatBytes(size) }),
    h(body, 'span', { class: 'dt-faint dt-number', text: pluralize(tensors, 'tensor') })
  ];
  const fill = (into: HTMLElement): void => {
    for (const kind of ['model', 'optimizer', 'tensor'] as const) {
      const rows = only.filter(holding => holding.kind === kind);
      if (rows.length > 0) {
        into.append(h(into, 'h4', { text: KINDS[kind] }), listOf(rows, drawing));
      }
    }
    if (only.length === 0) {
      into.append(h(into, 'p', { class: 'dt-none', text: 'Parts of what is listed above.' }));
    }
  };
  const fold = folding(drawing, { key: `device-${name}`, isOpen: true, summary, fill });
  fold.classList.add('dt-side-device');
  fold.dataset['device'] = name;
  return fold;
}

function listOf(rows: readonly IHolding[], { body, scope }: IDrawing): HTMLElement {
  const list = h(body, 'ul', { class: 'dt-side-list' });
  const add = (from: number, to: number): void => {
    list.append(...rows.slice(from, to).map(row => h(body, 'li', { class: 'dt-side-held' }, ...holdingRow(body, row))));
  };
  add(0, FIRST);
  if (rows.length > FIRST) {
    const more = button(body, `Show ${formatCount(rows.length - FIRST)} more`, { class: 'dt-small' });
    const item = h(body, 'li', {}, more);
    scope.listen(more, 'click', () => {
      item.remove();
      add(FIRST, rows.length);
    });
    list.append(item);
  }
  return list;
}

/** `x   [128, 768] float32   384 KB` */
function holdingRow(body: HTMLElement, holding: IHolding): Node[] {
  const { bytes } = holding.devices[0];
  return [
    nameOf(body, holding),
    h(body, 'span', { class: 'dt-faint dt-side-what', text: whatOf(holding) }),
    h(body, 'span', { class: 'dt-number', text: formatBytes(bytes) })
  ];
}

function nameOf(body: HTMLElement, { name, names }: IHolding): HTMLElement {
  const also = names.length > 0 ? `${name}, also ${names.join(', ')}` : name;
  return h(body, 'code', { class: 'dt-side-holds', text: name, title: also });
}

function whatOf(holding: IHolding): string {
  if (holding.kind === 'tensor') {
    return tensorOf(holding);
  }
  const parameters = holding.devices.reduce((sum, device) => sum + device.parameters, 0);
  return `${holding.type}  ${compact(parameters)} ${parameters === 1 ? 'parameter' : 'parameters'}`;
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
  const { body } = drawing;
  const head = [
    h(body, 'span', { class: 'dt-side-mixed', text: '!', aria: { hidden: 'true' } }),
    nameOf(body, holding),
    h(body, 'span', { class: 'dt-faint dt-side-what', text: whatOf(holding) }),
    h(body, 'span', { class: 'dt-side-spread' }, ...holding.devices.map(device => share(body, device)))
  ];
  const parts = holding.parts ?? [];
  if (parts.length === 0) {
    return h(body, 'div', { class: 'dt-side-held dt-side-mixed-one', data: { name: holding.name } }, ...head);
  }
  const fill = (into: HTMLElement): void => {
    const rows = parts.map(part =>
      h(into, 'li', { class: 'dt-side-held', data: { part: part.path } }, ...partRow(into, part))
    );
    into.append(h(into, 'ul', { class: 'dt-side-list' }, ...rows));
    if (holding.parts_left_out) {
      into.append(h(into, 'p', { class: 'dt-none', text: `and ${pluralize(holding.parts_left_out, 'more part')}` }));
    }
  };
  const fold = folding(drawing, { key: `mixed-${holding.name}`, isOpen: true, summary: head, fill });
  fold.classList.add('dt-side-mixed-model');
  fold.dataset['name'] = holding.name;
  return fold;
}

/** `G0 19 tensors` */
function share(body: HTMLElement, { device, tensors }: IDeviceShare): HTMLElement {
  const title = `${pluralize(tensors, 'tensor')} on ${device}`;
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
function partRow(body: HTMLElement, part: IPart): Node[] {
  const what = part.kind === 'module' ? part.type : `${tensorOf(part)} ${PART_KINDS[part.kind]}`.trim();
  return [
    h(body, 'code', { class: 'dt-side-holds', text: part.path, title: part.path }),
    h(body, 'span', { class: 'dt-faint dt-side-what', text: what }),
    h(body, 'span', { class: 'dt-devices' }, ...part.devices.map(({ device }) => chipOf(body, device, false)))
  ];
}
