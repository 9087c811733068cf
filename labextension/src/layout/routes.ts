/**
 * The path of an arrow between two boxes: across when they are side by side, down or up when one is below the other.
 */
import type { IBox } from './boxes';
import { HEAD_HEIGHT, LEAD, type IFlow, type IBoxBounds } from './flow';
import type { ILink } from './links';
import type { IPoint } from './point';

export interface IRoute {
  readonly link: ILink;
  /** An SVG path, ending at the tip. */
  readonly path: string;
  readonly tip: IPoint;
  readonly heading: 'right' | 'down' | 'up';
  /** The label begins here ('down', 'up') or has its middle here ('right'). */
  readonly label: IPoint;
}

/** Arrows into one box stand this far apart. */
const APART = 18;
const MOST_INTO_ONE = 4;

export function routesOf(flow: IFlow, links: readonly ILink[]): IRoute[] {
  const byBox = new Map<IBox, IBoxBounds>(flow.bounds.map(each => [each.box, each]));
  const taken = new Map<IBoxBounds, number>();
  const routes: IRoute[] = [];
  for (const link of links) {
    const target = byBox.get(link.target);
    const source = link.source ? byBox.get(link.source) : undefined;
    const rank = target ? (taken.get(target) ?? 0) : MOST_INTO_ONE;
    if (target && rank < MOST_INTO_ONE && (source ?? link.source === null)) {
      taken.set(target, rank + 1);
      routes.push(source ? between(link, source, target, rank) : fromOutside(link, target, rank));
    }
  }
  return routes;
}

function fromOutside(link: ILink, target: IBoxBounds, rank: number): IRoute {
  return across(link, target.x - LEAD + 8, target, target.y + HEAD_HEIGHT / 2 + rank * APART);
}

function across(link: ILink, from: number, target: IBoxBounds, y: number): IRoute {
  const label = { x: (Math.max(from, target.x - LEAD) + target.x) / 2 - 4, y: y - 5 };
  return { link, path: `M${from},${y}L${target.x},${y}`, tip: { x: target.x, y }, heading: 'right', label };
}

function between(link: ILink, source: IBoxBounds, target: IBoxBounds, rank: number): IRoute {
  const y = target.y + HEAD_HEIGHT / 2 + rank * APART;
  const right = source.x + source.width;
  if (right <= target.x && y >= source.y && y <= source.y + source.height) {
    return across(link, right, target, y);
  }
  const isBelow = target.y >= source.y;
  const begin = isBelow ? source.y + source.height : source.y;
  const end = isBelow ? target.y : target.y + target.height;
  const x = downAt(source, target) + rank * APART * 4;
  const startX = Math.min(Math.max(x, source.x + 8), right - 8);
  const bend = (end - begin) / 2;
  const path =
    startX === x
      ? `M${x},${begin}L${x},${end}`
      : `M${startX},${begin}C${startX},${begin + bend} ${x},${end - bend} ${x},${end}`;
  const label = { x: x + 8, y: isBelow ? end - 9 : end + 15 };
  return { link, path, tip: { x, y: end }, heading: isBelow ? 'down' : 'up', label };
}

/** An x over the target and, where there is one, below the source too. */
function downAt(source: IBoxBounds, target: IBoxBounds): number {
  const left = Math.max(source.x, target.x);
  const right = Math.min(source.x + source.width, target.x + target.width);
  return right - left > 24 ? left + Math.min((right - left) / 2, 48) : target.x + Math.min(target.width / 2, 48);
}
