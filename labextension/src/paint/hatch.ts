/**
 * Hatches: what tells two devices of one hue apart without colour. As lines for a canvas pattern, and as CSS for boxes in the page.
 */
import type { Context } from './context';
import type { Hatch } from './palette';

/** Size of the tile that a canvas pattern repeats, in pixels. */
export const TILE = 8;

/** Draws one tile of a hatch in the current stroke and fill style. */
export function paintHatch(ctx: Context, hatch: Hatch): void {
  ctx.beginPath();
  if (hatch === 'diagonal' || hatch === 'cross') {
    lines(ctx, [-2, 2, 2, -2], [-2, 10, 10, -2], [6, 10, 10, 6]);
  }
  if (hatch === 'back' || hatch === 'cross') {
    lines(ctx, [-2, 6, 2, 10], [-2, -2, 10, 10], [6, -2, 10, 2]);
  }
  if (hatch === 'horizontal' || hatch === 'grid') {
    lines(ctx, [0, 2, 8, 2], [0, 6, 8, 6]);
  }
  if (hatch === 'vertical' || hatch === 'grid') {
    lines(ctx, [2, 0, 2, 8], [6, 0, 6, 8]);
  }
  ctx.stroke();
  if (hatch === 'dots') {
    ctx.fillRect(1, 1, 2, 2);
    ctx.fillRect(5, 5, 2, 2);
  }
}

type Line = readonly [x1: number, y1: number, x2: number, y2: number];

function lines(ctx: Context, ...all: Line[]): void {
  for (const [x1, y1, x2, y2] of all) {
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
  }
}

const ANGLES: Readonly<Record<Hatch, readonly number[]>> = {
  none: [],
  diagonal: [45],
  back: [-45],
  cross: [45, -45],
  horizontal: [0],
  vertical: [90],
  grid: [0, 90],
  dots: []
};

/** A `background-image` that lays the hatch over a box's colour. */
export function hatchCss(hatch: Hatch, ink: string): string {
  const faint = `color-mix(in srgb, ${ink} 28%, transparent)`;
  if (hatch === 'dots') {
    return `radial-gradient(${faint} 1px, transparent 1.5px) 0 0 / 5px 5px`;
  }
  const layers = ANGLES[hatch].map(
    angle => `repeating-linear-gradient(${angle}deg, ${faint} 0 1px, transparent 1px 5px)`
  );
  return layers.join(', ') || 'none';
}
