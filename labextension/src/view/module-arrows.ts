/**
 * The arrows of the module view: drawn over the boxes; the boxes' labels say the same in words.
 */
import type { IFlow } from '../layout/flow';
import type { IRoute } from '../layout/routes';
import { formatBytes } from '../layout/units';
import { svgElement } from './svg';

/** From the tip backwards. */
const HEADS = { right: 'l-8,-4.5v9z', down: 'l-4.5,-8h9z', up: 'l-4.5,8h9z' } as const;

export function arrowsElement(owner: Node, flow: IFlow, routes: readonly IRoute[]): SVGElement {
  const make = svgElement.bind(null, owner);
  const svg = make('svg', {
    class: 'dt-arrows',
    'aria-hidden': 'true',
    width: String(Math.max(flow.width, 1)),
    height: String(Math.max(flow.height, 1))
  });
  for (const { path, tip, label, link, heading } of routes) {
    const text = make('text', {
      class: 'dt-arrow-label',
      x: String(label.x),
      y: String(label.y),
      'text-anchor': heading === 'right' ? 'middle' : 'start'
    });
    text.textContent = `${link.count > 1 ? `×${link.count} ` : ''}${formatBytes(link.bytes)}`;
    svg.append(
      make('path', { class: 'dt-arrow-halo', d: path }),
      make('path', { class: 'dt-arrow', d: path }),
      make('path', { class: 'dt-arrow-head', d: `M${tip.x},${tip.y}${HEADS[heading]}` }),
      text
    );
  }
  return svg;
}
