/**
 * A point (px) of a picture, from its upper left corner.
 */
export interface IPoint {
  readonly x: number;
  readonly y: number;
}

export const CORNER: IPoint = { x: 0, y: 0 };
