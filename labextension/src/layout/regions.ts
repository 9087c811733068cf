/**
 * The lines of a long source that are shown: touched ones with their neighbours; the rest are gaps that open on demand.
 */

export interface IRegion {
  /** Indexes of lines, the end exclusive. */
  readonly from: number;
  readonly to: number;
  readonly shown: boolean;
}

const NEIGHBOURS = 4;
/** A gap this short is not worth its button. */
const SHORTEST_GAP = 4;
/** Sources up to this many lines are shown whole. */
const WHOLE = 40;

export function regionsOf(count: number, touched: readonly number[]): IRegion[] {
  if (count <= WHOLE) {
    return [{ from: 0, to: count, shown: true }];
  }
  const regions: IRegion[] = [];
  let end = 0;
  for (const line of touched.length > 0 ? touched : [0]) {
    const from = Math.max(line - NEIGHBOURS, end);
    const to = Math.min(line + NEIGHBOURS + 1, count);
    if (to > end) {
      addGap(regions, end, from);
      addShown(regions, from, to);
      end = to;
    }
  }
  addGap(regions, end, count);
  return regions;
}

function addGap(regions: IRegion[], from: number, to: number): void {
  if (to - from >= SHORTEST_GAP) {
    regions.push({ from, to, shown: false });
  } else if (to > from) {
    addShown(regions, from, to);
  }
}

/** Shown stretches that touch are one. */
function addShown(regions: IRegion[], from: number, to: number): void {
  const last = regions.at(-1);
  if (last?.shown && last.to === from) {
    regions[regions.length - 1] = { ...last, to };
  } else {
    regions.push({ from, to, shown: true });
  }
}
