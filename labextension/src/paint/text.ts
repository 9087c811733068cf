/**
 * Text in a box: measured once, cut with an ellipsis, left out where nothing readable fits.
 */
import type { Context } from './context';

const widths = new Map<string, number>();
const MOST_CACHED = 20_000;
/** No label is longer on screen, however long the name is. */
const LONGEST = 120;

export function textWidth(ctx: Context, text: string): number {
  const key = `${ctx.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > MOST_CACHED) {
      widths.clear();
    }
    width = ctx.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/** The text, or its start with an ellipsis, or '' when not even three letters fit. */
export function fitted(ctx: Context, text: string, room: number): string {
  const whole = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  if (textWidth(ctx, whole) <= room) {
    return whole;
  }
  const letters = Math.floor((room / textWidth(ctx, whole)) * whole.length) - 1;
  return letters < 3 ? '' : `${whole.slice(0, letters)}…`;
}

export function drawFitted(ctx: Context, text: string, x: number, y: number, room: number): void {
  const shown = room < 14 ? '' : fitted(ctx, text, room);
  if (shown) {
    ctx.fillText(shown, x, y);
  }
}
