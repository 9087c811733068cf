/**
 * One box of the module view.
 */
import type { IBox } from '../layout/boxes';
import { unusualDtypes, withDtype } from '../layout/dtypes';
import type { IBoxBounds } from '../layout/flow';
import type { ILink } from '../layout/links';
import { formatBytes, formatTime } from '../layout/units';
import { deviceName, deviceOrNone, modulePath, type ITrace } from '../model/trace';
import { listed, sentence, type Language } from '../model/words/catalogue';
import { h } from './dom';
import { drawnDevice, swatch } from './chips';

/** A box is filled by at most this many devices. */
const MOST_FILLS = 4;

/** The two lines of a box: its name; its type, the dtype of its parameters where that is not the usual one, ops and time. */
export function boxText(trace: ITrace, box: IBox): { title: string; detail: string } {
  const [{ id, name }] = box.nodes;
  const last = box.nodes[box.repeats - 1].name;
  const title = box.repeats > 1 ? `${spanned(name, last)} ×${box.repeats}` : name;
  const dtypes = unusualDtypes(
    trace,
    box.nodes.flatMap(node => [...node.parameterDtypes])
  );
  const kind = withDtype(trace.strings[trace.modules.type[id]], dtypes);
  return { title, detail: [kind, ...workOf(trace.language, box)].join(' · ') };
}

function spanned(first: string, last: string): string {
  return first === last ? first : `${first}…${last}`;
}

function workOf(language: Language, box: IBox): string[] {
  const sum = (of: 'ops' | 'time'): number => box.nodes.reduce((total, node) => total + node[of], 0);
  if (!box.nodes.some(node => node.ran)) {
    return [sentence(language, 'modules.never-ran')];
  }
  return sum('ops') === 0 ? [] : [sentence(language, 'count.ops', { count: sum('ops') }), formatTime(sum('time'))];
}

/** The devices of its parameters, else those of its ops. */
function devicesOf(box: IBox): number[] {
  const all = (of: 'parameterDevices' | 'opDevices'): number[] =>
    [...new Set(box.nodes.flatMap(node => [...node[of]]))].sort();
  const devices = all('parameterDevices');
  return devices.length > 0 ? devices : all('opDevices');
}

export function boxElement(owner: Node, trace: ITrace, bounds: IBoxBounds, links: readonly ILink[]): HTMLElement {
  const { box } = bounds;
  const [{ id, children, ownAlarm }] = box.nodes;
  const devices = devicesOf(box);
  const { detail } = boxText(trace, box);
  const names = devices.map(device => deviceName(trace, device));
  const classes = ['dt-box', box.open ? 'dt-box-open' : '', box.nodes.some(node => node.ran) ? '' : 'dt-idle'];
  return h(
    owner,
    'div',
    {
      class: [...classes, ['', 'dt-warned', 'dt-failed'][ownAlarm]].filter(name => name !== '').join(' '),
      role: 'treeitem',
      title: modulePath(trace, id),
      data: { module: modulePath(trace, id).slice(0, 500), device: names.join(' ') },
      aria: {
        level: String(box.depth + 1),
        selected: 'false',
        ...(children.length > 0 ? { expanded: String(box.open) } : {})
      },
      style: {
        left: `${bounds.x}px`,
        top: `${bounds.y}px`,
        width: `${bounds.width}px`,
        height: `${bounds.height}px`,
        '--dt-fills': fills(devices)
      }
    },
    head(owner, trace, box, devices),
    h(owner, 'span', { class: 'dt-box-detail', text: detail }),
    h(owner, 'span', { class: 'dt-hidden', text: screenReaderText(trace, box, names, links) })
  );
}

function head(owner: Node, trace: ITrace, box: IBox, devices: readonly number[]): HTMLElement {
  const [{ name, children, alarm }] = box.nodes;
  const last = box.nodes[box.repeats - 1].name;
  const result = h(
    owner,
    'span',
    { class: 'dt-box-head' },
    ...devices.slice(0, MOST_FILLS).map(device => swatch(owner, drawnDevice(trace, device))),
    h(owner, 'span', { class: 'dt-box-name', text: spanned(name, last).slice(0, 200) })
  );
  if (box.repeats > 1) {
    const title = sentence(trace.language, 'modules.each');
    result.append(h(owner, 'span', { class: 'dt-repeats', text: `×${box.repeats}`, title }));
  }
  if (alarm === 2) {
    result.append(h(owner, 'span', { class: 'dt-box-sign', text: '✗', aria: { hidden: 'true' } }));
  }
  if (children.length > 0) {
    result.append(
      h(owner, 'span', { class: 'dt-grow' }),
      h(owner, 'span', { class: 'dt-toggle', text: box.open ? '▾' : '▸', aria: { hidden: 'true' } })
    );
  }
  return result;
}

/** Says in words what a box shows by colour, outline and arrows. */
function screenReaderText(trace: ITrace, box: IBox, devices: readonly string[], links: readonly ILink[]): string {
  const { language } = trace;
  const { alarm } = box.nodes[0];
  const state = alarm === 0 ? '' : sentence(language, alarm === 2 ? 'modules.failed' : 'modules.finding');
  const received = links.map(({ from, to, bytes }) => {
    const devicesOfLink = { from: deviceOrNone(trace, from), to: deviceOrNone(trace, to) };
    return sentence(language, 'modules.receives', { size: formatBytes(bytes), ...devicesOfLink });
  });
  const where = listed(language, devices) || sentence(language, 'device.none');
  return sentence(language, 'modules.on', { devices: where }) + state + received.join('');
}

/** Equal stripes of the devices' colours, side by side. */
function fills(devices: readonly number[]): string {
  const shown = devices.slice(0, MOST_FILLS);
  const stops = shown.map((device, i) => {
    const at = (share: number): string => `${Math.round((share / shown.length) * 100)}%`;
    return `var(--dt-device-${device}) ${at(i)} ${at(i + 1)}`;
  });
  return stops.length > 0 ? `linear-gradient(90deg, ${stops.join(', ')})` : 'none';
}
