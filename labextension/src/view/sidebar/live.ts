/**
 * The cell that is being traced, while it runs: ops and bytes by device, and what crossed.
 */
import { formatBytes, formatCount, formatTime } from '../../layout/units';
import type { ISidebar } from '../../model/sidebar';
import { sentence } from '../../model/words/catalogue';
import { h } from '../dom';
import { barOf, chipOf } from './device';
import type { IDrawing } from './drawing';

export function drawLive({ live }: ISidebar, { body, language }: IDrawing): void {
  if (live === null) {
    return;
  }
  const most = Math.max(1, ...live.devices.map(({ ops }) => ops));
  const table = h(body, 'table', { class: 'dt-side-live-table' });
  table.append(h(body, 'caption', { class: 'dt-hidden', text: sentence(language, 'live.table') }));
  for (const { device, simulated, ops, bytes } of live.devices) {
    table.append(
      h(
        body,
        'tr',
        { data: { device } },
        h(body, 'th', { attributes: { scope: 'row' } }, chipOf(body, device, simulated)),
        h(body, 'td', {}, barOf(body, device, ops / most)),
        h(body, 'td', { class: 'dt-number', text: sentence(language, 'count.ops', { count: ops }) }),
        h(body, 'td', { class: 'dt-number', text: formatBytes(bytes) })
      )
    );
  }
  const copied = { count: live.copies, size: formatBytes(live.copied) };
  const rest = live.copies === 0 ? sentence(language, 'live.nothing') : sentence(language, 'live.copies', copied);
  body.append(
    h(
      body,
      'div',
      { class: 'dt-side-live-head' },
      h(body, 'span', { class: 'dt-side-pulse', aria: { hidden: 'true' } }),
      h(body, 'strong', { text: sentence(language, 'live.is-running', { label: live.label }) }),
      h(body, 'span', { class: 'dt-grow' }),
      h(body, 'span', { class: 'dt-number', text: formatTime(live.seconds * 1e9) })
    ),
    h(
      body,
      'p',
      { class: 'dt-faint' },
      h(body, 'span', { text: formatCount(live.ops), data: { live: 'ops' } }),
      ` ${sentence(language, 'live.ops', { count: live.ops })}${rest}`
    ),
    table
  );
}
