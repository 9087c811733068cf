/**
 * The bounds of boxes: in rows, left to right in the order of execution, wrapped at the width, a container as wide as what is in it. O(n).
 */
import type { IBox } from './boxes';

export interface IBoxBounds {
  readonly box: IBox;
  /** Index of the box that it lies in, -1 at the top. */
  readonly parent: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface IFlow {
  readonly bounds: readonly IBoxBounds[];
  readonly width: number;
  readonly height: number;
}

/** Width (px) of one letter of the names, which are set in a monospaced face of 12 px. */
const LETTER = 7.3;
const SMALL_LETTER = 6.2;
const LEAF_HEIGHT = 44;
export const HEAD_HEIGHT = 30;
const PAD = 8;
const GAP = 8;
const NARROWEST = 84;
const WIDEST = 230;

/** The two lines of text of a box, which make it as wide as they are. */
type Measure = (box: IBox) => { readonly title: string; readonly detail: string };

/** Room for the arrow that leads to a box: none, from its neighbour (before it or, on a new row, above it), or from outside. */
export type Lead = 'none' | 'neighbour' | 'outside';

/** In front of a box: a label such as `×12 3.1 MB`. */
export const LEAD = 86;
/** Above a box. */
const LEAD_ABOVE = 18;

interface ISized {
  readonly box: IBox;
  readonly lead: Lead;
  readonly width: number;
  readonly height: number;
  /** Children with their positions within the box. */
  readonly inside: ReadonlyArray<readonly [ISized, x: number, y: number]>;
}

export function layOutBoxes(
  boxes: readonly IBox[],
  width: number,
  measure: Measure,
  leadTo: (box: IBox) => Lead
): IFlow {
  const sized = boxes.map(box => size(box, width, measure, leadTo));
  const [inside, used, height] = wrap(sized, width);
  const bounds: IBoxBounds[] = [];
  const put = (item: ISized, parent: number, x: number, y: number): void => {
    const id = bounds.push({ box: item.box, parent, x, y, width: item.width, height: item.height }) - 1;
    item.inside.forEach(([child, dx, dy]) => {
      put(child, id, x + dx, y + dy);
    });
  };
  inside.forEach(([item, x, y]) => {
    put(item, -1, x, y);
  });
  return { bounds, width: used, height };
}

function size(box: IBox, room: number, measure: Measure, leadTo: (box: IBox) => Lead): ISized {
  const { title, detail } = measure(box);
  const text = Math.max(title.length * LETTER, detail.length * SMALL_LETTER) + 34;
  const own = Math.min(Math.max(text, NARROWEST), WIDEST, Math.max(room, NARROWEST));
  const lead = leadTo(box);
  if (!box.open) {
    return { box, lead, width: own, height: LEAF_HEIGHT, inside: [] };
  }
  const inner = Math.max(room - 2 * PAD, NARROWEST);
  const [inside, used, height] = wrap(
    box.children.map(child => size(child, inner, measure, leadTo)),
    inner
  );
  return {
    box,
    lead,
    width: Math.max(own, used + 2 * PAD),
    height: HEAD_HEIGHT + height + PAD,
    inside: inside.map(([item, x, y]) => [item, x + PAD, y + HEAD_HEIGHT])
  };
}

/** Put items into rows: their positions, the width of the widest row and the height of all. */
function wrap(
  items: readonly ISized[],
  room: number
): [inside: Array<[ISized, number, number]>, width: number, height: number] {
  const inside: Array<[ISized, number, number]> = [];
  let [x, y, rowHeight, used] = [0, 0, 0, 0];
  for (const item of items) {
    const before = item.lead === 'none' ? 0 : LEAD;
    const isNewRow = x > 0 && x + before + item.width > room;
    if (isNewRow) {
      [x, y, rowHeight] = [0, y + rowHeight + GAP + (item.lead === 'neighbour' ? LEAD_ABOVE : 0), 0];
    }
    x += item.lead === 'outside' || (x > 0 && !isNewRow) ? before : 0;
    inside.push([item, x, y]);
    x += item.width + GAP;
    used = Math.max(used, x - GAP);
    rowHeight = Math.max(rowHeight, item.height);
  }
  return [inside, used, y + rowHeight];
}
