/**
 * The rows above the lanes, of which those with nothing to show take no room.
 */
interface IBand {
  readonly y: number;
  readonly height: number;
}

export interface IHeader {
  readonly minimap: IBand;
  readonly axis: IBand;
  readonly flags: IBand;
  readonly phases: IBand;
  readonly height: number;
}

export function makeHeader(hasFlags: boolean, hasPhases: boolean): IHeader {
  const minimap = { y: 0, height: 26 };
  const axis = { y: 30, height: 18 };
  const flags = { y: 48, height: hasFlags ? 19 : 0 };
  const phases = { y: flags.y + flags.height + 1, height: hasPhases ? 13 : 0 };
  return { minimap, axis, flags, phases, height: phases.y + phases.height + (hasPhases ? 5 : 2) };
}

export function isWithin(band: IBand, y: number): boolean {
  return y >= band.y && y < band.y + band.height;
}
