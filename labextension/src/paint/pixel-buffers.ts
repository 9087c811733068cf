/**
 * Room to count in while a row is painted. A canvas has one for all its rows and frames: making the arrays anew each time keeps the garbage
 * collector busy in the middle of a pan.
 */

export interface IColumns {
  /** By device pixel: how much of it is covered, and how many spans begin in it. */
  readonly share: Float32Array;
  readonly count: Uint32Array;
}

export class PixelBuffers {
  private _share = new Float32Array(4096);
  private _count = new Uint32Array(4096);

  /** Empty columns, good until the next call. */
  empty(length: number): IColumns {
    if (length > this._share.length) {
      this._share = new Float32Array(length * 2);
      this._count = new Uint32Array(length * 2);
    }
    this._share.fill(0, 0, length);
    this._count.fill(0, 0, length);
    return { share: this._share.subarray(0, length), count: this._count.subarray(0, length) };
  }
}
