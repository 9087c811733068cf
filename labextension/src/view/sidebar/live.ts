/**
 * The cell that is being traced, while it runs: ops and bytes by device, and what crossed.
 */
import { pluralize, formatBytes, formatCount, formatTime } from '../../layout/units';
import type { ISidebar } from '../../model/sidebar';
import { h } from '../dom';
import { barOf, chipOf } from './device';
import type { IDrawing } from './drawing';

export function drawLive({ live }: ISidebar, { body }: IDrawing): void {
  if (live === null) {
    return;
  }
  const most = Math.max(1, ...live.devices.map(({ ops }) => ops));
  const table = h(body, 'table', { class: 'dt-side-live-table' });
  table.append(h(body, 'caption', { class: 'dt-hidden', text: 'Ops and bytes made, by device' }));
  for (const { device, simulated, ops, bytes } of live.devices) {
    table.append(
      h(
        body,
        'tr',
        { data: { device } },
        h(body, 'th', { attributes: { scope: 'row' } }, chipOf(body, device, simulated)),
        h(body, 'td', {}, barOf(body, device, ops / most)),
        h(body, 'td', { class: 'dt-number', text: pluralize(ops, 'op') }),
        h(body, 'td', { class: 'dt-number', text: formatBytes(bytes) })
      )
    );
  }
  const crossed =
    live.copies === 0 ? 'nothing crossed' : `${pluralize(live.copies, 'copy', 'copies')}, ${formatBytes(live.copied)}`;
  body.append(
    h(
      body,
      'div',
      { class: 'dt-side-live-head' },
      h(body, 'span', { class: 'dt-side-pulse', aria: { hidden: 'true' } }),
      h(body, 'strong', { text: `${live.label} is running` }),
      h(body, 'span', { class: 'dt-grow' }),
      h(body, 'span', { class: 'dt-number', text: formatTime(live.seconds * 1e9) })
    ),
    h(
      body,
      'p',
      { class: 'dt-faint' },
      h(body, 'span', { text: formatCount(live.ops), data: { live: 'ops' } }),
      ` ${live.ops === 1 ? 'op' : 'ops'}, ${crossed}`
    ),
    table
  );
}
