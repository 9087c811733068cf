/**
 * Modules as nested boxes in the order of execution. Repeats (`h0 ×6`) fold into one box, but only where the whole tree below them has the
 * same types on the same devices, in the same dtypes, and no finding: a fold never hides a change of these.
 */
import type { ITrace } from '../model/trace';
import type { IModuleNode } from './modules';

export interface IBox {
  /** The modules it stands for: one, or all that are folded into it. */
  readonly nodes: readonly IModuleNode[];
  /** The number of neighbours in one fold, 1 without a fold. */
  readonly repeats: number;
  readonly depth: number;
  readonly children: readonly IBox[];
  readonly open: boolean;
}

export interface IOpening {
  /** Modules whose boxes the user opened or closed, by id of the first module of the box. */
  readonly opened: ReadonlyMap<number, boolean>;
  /** The modules of folds that the user took apart. */
  readonly unfolded: ReadonlySet<number>;
}

/** Boxes that are open without asking, all levels together. */
const OPEN_BOXES = 120;

export function buildBoxes(trace: ITrace, roots: readonly IModuleNode[], opening: IOpening): IBox[] {
  const signatures = signaturesOf(trace, roots);
  const depth = openDepth(roots, signatures, opening);
  const group = (nodes: ReadonlyArray<readonly IModuleNode[]>, level: number): IBox[] =>
    runs(nodes[0], signatures, opening).map(([from, to]) => {
      const members = nodes.flatMap(siblings => siblings.slice(from, to));
      const first = members[0];
      const open = first.children.length > 0 && (opening.opened.get(first.id) ?? (level < depth || first.alarm === 2));
      return {
        nodes: members,
        repeats: to - from,
        depth: level,
        open,
        children: open
          ? group(
              members.map(node => node.children),
              level + 1
            )
          : []
      };
    });
  return roots.length > 0 ? group([roots], 0) : [];
}

/** Equal numbers for trees of equal types, devices, dtypes and repeats; a module with a finding is like no other. */
function signaturesOf(trace: ITrace, roots: readonly IModuleNode[]): Map<number, number> {
  const known = new Map<string, number>();
  const signatures = new Map<number, number>();
  const visit = (node: IModuleNode): number => {
    const below = node.children.map(visit).join();
    const sets = [node.parameterDevices, node.parameterDtypes, node.opDevices];
    const where = sets.map(ids => [...ids].sort().join()).join('/');
    const own = node.alarm > 0 ? `!${node.id}` : `${trace.modules.type[node.id]} ${where} ${node.ran}`;
    const key = `${own} (${below})`;
    const signature = known.get(key) ?? known.size;
    known.set(key, signature);
    signatures.set(node.id, signature);
    return signature;
  };
  roots.forEach(visit);
  return signatures;
}

/** The stretches of siblings that are one box each. */
function runs(
  siblings: readonly IModuleNode[],
  signatures: ReadonlyMap<number, number>,
  opening: IOpening
): Array<[from: number, to: number]> {
  const found: Array<[number, number]> = [];
  siblings.forEach((node, i) => {
    const last = found.at(-1);
    const first = last && siblings[last[0]];
    if (last && first && !opening.unfolded.has(first.id) && isRepeat(first, node, signatures)) {
      last[1] = i + 1;
    } else {
      found.push([i, i + 1]);
    }
  });
  return found;
}

/** `h0` and `h1`, `0` and `1`; not `query` and `key`, which are no repeats however alike they are. */
function isRepeat(a: IModuleNode, b: IModuleNode, signatures: ReadonlyMap<number, number>): boolean {
  return signatures.get(a.id) === signatures.get(b.id) && stem(a.name) === stem(b.name);
}

function stem(name: string): string {
  return name.replace(/\d+/g, '#');
}

/** Count the levels that can be open before there are too many boxes. */
function openDepth(roots: readonly IModuleNode[], signatures: ReadonlyMap<number, number>, opening: IOpening): number {
  let level: IModuleNode[] = runs(roots, signatures, opening).map(([from]) => roots[from]);
  let boxes = level.length;
  let depth = 0;
  while (level.length > 0) {
    level = level.flatMap(({ children }) => runs(children, signatures, opening).map(([from]) => children[from]));
    boxes += level.length;
    if (boxes > OPEN_BOXES) {
      break;
    }
    depth++;
  }
  return depth;
}
