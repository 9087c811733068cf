/**
 * A point (px) of a picture, from its upper left corner.
 */
export interface IPoint {
  readonly x: number;
  readonly y: number;
}
