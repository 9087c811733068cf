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
export function nowhere({ timeline, range, animation }: ITimelineState): INowhere | null {
  const { lanes, start, end } = timeline;
  const { tracks } = lanes;
  if (start.length === 0 || animation !== null) {
    return null;
  }
  for (let lane = 0; lane < lanes.lanes.length; lane++) {
    const [from, to] = visible(tracks, lane, range.begin, range.end);
    if (to > from) {
      return null;
    }
  }
  const after = search(start, range.end, 0, start.length);
  let before = -1;
  for (let lane = 0; lane < lanes.lanes.length; lane++) {
    const at = search(tracks.end, range.begin, tracks.rows[lane], tracks.rows[lane + 1]) - 1;
    const op = at < tracks.rows[lane] ? -1 : tracks.order[at];
    before = op >= 0 && (before < 0 || end[op] > end[before]) ? op : before;
  }
  return { before, after: after < start.length ? after : -1 };
}
