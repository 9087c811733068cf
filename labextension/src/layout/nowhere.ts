/**
 * A view of a timeline in which no op ran: between two ops there may be a gap in which a view is lost.
 */
import { search, visible } from './tracks';
import type { ITimelineState } from './timeline-state';

/** The nearest ops on both sides of the view, -1 for none. */
export interface INowhere {
  readonly before: number;
  readonly after: number;
}

/** Null where some op is in view. */
export function nowhere({ timeline, stack, range, animation }: ITimelineState): INowhere | null {
  const { lanes, start, end } = timeline;
  const { tracks } = lanes;
  if (start.length === 0 || animation !== null) {
    return null;
  }
  const shown = lanes.lanes.map((_, lane) => lane).filter(lane => stack.lanes[lane] !== undefined);
  for (const lane of shown) {
    const [from, to] = visible(tracks, lane, range.begin, range.end);
    if (to > from) {
      return null;
    }
  }
  let after = start.length;
  let before = -1;
  for (const lane of shown) {
    const next = search(tracks.start, range.end, tracks.rows[lane], tracks.rows[lane + 1]);
    after = next < tracks.rows[lane + 1] ? Math.min(after, tracks.order[next]) : after;
    const at = search(tracks.end, range.begin, tracks.rows[lane], tracks.rows[lane + 1]) - 1;
    const op = at < tracks.rows[lane] ? -1 : tracks.order[at];
    before = op >= 0 && (before < 0 || end[op] > end[before]) ? op : before;
  }
  return { before, after: after < start.length ? after : -1 };
}
