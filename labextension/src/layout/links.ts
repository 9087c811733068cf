/**
 * Crossings as arrows between the boxes that are on show: gathered by box, devices and direction.
 */
import type { IBox } from './boxes';
import type { ICrossing } from './crossings';

export interface ILink {
  /** null: data from outside of all modules. */
  readonly source: IBox | null;
  readonly target: IBox;
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly bytes: number;
}

/** By module the innermost box that shows it. */
export function boxesByModule(boxes: readonly IBox[]): Map<number, IBox> {
  const byModule = new Map<number, IBox>();
  const visit = (box: IBox): void => {
    const cover = (nodes: IBox['nodes']): void => {
      for (const node of nodes) {
        byModule.set(node.id, box);
        if (!box.open) {
          cover(node.children);
        }
      }
    };
    cover(box.nodes);
    box.children.forEach(visit);
  };
  boxes.forEach(visit);
  return byModule;
}

/** By box the box that it lies in. */
function parentsOf(boxes: readonly IBox[]): Map<IBox, IBox> {
  const parents = new Map<IBox, IBox>();
  const visit = (box: IBox): void => {
    for (const child of box.children) {
      parents.set(child, box);
      visit(child);
    }
  };
  boxes.forEach(visit);
  return parents;
}

/** From the innermost box to the outermost. */
function chain(box: IBox | undefined, parents: ReadonlyMap<IBox, IBox>): IBox[] {
  const found: IBox[] = [];
  for (let at = box; at; at = parents.get(at)) {
    found.push(at);
  }
  return found;
}

/** Two boxes as neighbours: each widened to the largest that does not hold the other. */
function asNeighbours(source: readonly IBox[], target: readonly IBox[]): [IBox | null, IBox | null] {
  const apart = (own: readonly IBox[], other: readonly IBox[]): IBox | null =>
    other.length === 0 ? (own[0] ?? null) : (own.filter(box => !other.includes(box)).at(-1) ?? null);
  return [apart(source, target), apart(target, source)];
}

export function linksOf(
  crossings: readonly ICrossing[],
  boxes: readonly IBox[],
  byModule: ReadonlyMap<number, IBox>
): ILink[] {
  const parents = parentsOf(boxes);
  const ids = new Map<IBox | null, number>();
  const idOf = (box: IBox | null): number => {
    const id = ids.get(box) ?? ids.size;
    ids.set(box, id);
    return id;
  };
  const links = new Map<string, { -readonly [K in keyof ILink]: ILink[K] }>();
  for (const { source, target, from, to, bytes } of crossings) {
    const ends = asNeighbours(chain(byModule.get(source), parents), chain(byModule.get(target), parents));
    if (ends[1] === null || ends[0] === ends[1]) {
      continue;
    }
    const key = [...ends.map(idOf), from, to].join();
    const link = links.get(key) ?? { source: ends[0], target: ends[1], from, to, count: 0, bytes: 0 };
    link.count++;
    link.bytes += bytes;
    links.set(key, link);
  }
  return [...links.values()];
}
