/**
 * Idle stretches that are drawn short: a band through all lanes, and in the axis how long each was.
 */
import { xOf, type IRange } from '../layout/scale';
import { formatTime } from '../layout/units';
import { sentence } from '../model/words/catalogue';
import { snap, type Context, type IFrame } from './context';
import { textWidth } from './text';

/** Room (px) on both sides of a fold's words. */
const AIR = 5;

/** Paints the bands; returns the stretches (px) that their words take of the axis. */
export function paintFolds(ctx: Context, frame: IFrame): IRange[] {
  const { timeline, range, width, height, theme } = frame;
  const { axis } = timeline.header;
  const taken: IRange[] = [];
  for (const fold of timeline.folds) {
    const left = snap(frame, xOf(range, width, fold.begin));
    const right = snap(frame, xOf(range, width, fold.end));
    if (right < 0 || left > width) {
      continue;
    }
    ctx.fillStyle = theme.raised;
    ctx.fillRect(left, axis.y, right - left, height);
    ctx.fillStyle = theme.line;
    ctx.fillRect(left, axis.y, 1 / frame.ratio, height);
    ctx.fillRect(right, axis.y, 1 / frame.ratio, height);
    const words = sentence(timeline.trace.language, 'timeline.idle', { time: formatTime(fold.to - fold.from) });
    const room = textWidth(ctx, words) + 2 * AIR;
    const begin = Math.min(Math.max((left + right - room) / 2, 0), width - room);
    if (begin >= 0 && taken.every(({ begin: from, end }) => begin > end || begin + room < from)) {
      ctx.fillStyle = theme.raised;
      ctx.fillRect(begin, axis.y, room, axis.height);
      ctx.fillStyle = theme.text;
      ctx.fillText(words, begin + AIR, axis.y + axis.height / 2);
      taken.push({ begin, end: begin + room });
    }
  }
  return taken;
}
