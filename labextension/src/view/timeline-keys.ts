/**
 * The timeline by keyboard alone. Keys that it takes do not reach the notebook, whose shortcuts they would fire.
 */
import { panned, zoomed } from '../layout/scale';
import type { Scope } from './scope';
import type { IPlot } from './timeline-pointer';

export function listenToKeys(plot: IPlot, scope: Scope): void {
  scope.listen(plot.node, 'keydown', event => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : actionOf(plot, event);
    if (act) {
      act();
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

function actionOf(plot: IPlot, event: KeyboardEvent): (() => void) | undefined {
  const pan = (share: number) => () => {
    plot.show(panned(plot.range, plot.whole, share * (plot.range.end - plot.range.begin)), true);
  };
  const zoom = (factor: number) => () => {
    plot.show(zoomed(plot.range, plot.whole, factor, (plot.range.begin + plot.range.end) / 2), true);
  };
  const actions: Record<string, (() => void) | undefined> = {
    ArrowLeft: event.shiftKey ? pickNeighbour(plot, -1) : pan(-0.2),
    ArrowRight: event.shiftKey ? pickNeighbour(plot, 1) : pan(0.2),
    ArrowUp: () => plot.scrollBy(-40),
    ArrowDown: () => plot.scrollBy(40),
    '+': zoom(0.6),
    '=': zoom(0.6),
    '-': zoom(1 / 0.6),
    Home: () => plot.show(plot.whole, true),
    Enter: () => plot.showPicked(),
    Escape: () => plot.selection.clear(),
    Tab: pickFinding(plot, event.shiftKey ? -1 : 1)
  };
  return actions[event.key];
}

/** Tab goes from finding to finding (notes ask for nothing), and on out of the timeline after the last: it never holds the keyboard. */
function pickFinding(plot: IPlot, step: 1 | -1): (() => void) | undefined {
  const count = plot.trace.findings?.filter(({ severity }) => severity !== 'note').length ?? 0;
  const now = plot.selection.picked.finding;
  const next = now < 0 && step < 0 ? -1 : now + step;
  return next >= 0 && next < count ? () => plot.selection.pickFinding(next) : undefined;
}

/** The op before or after the picked one, in the order of the trace. */
function pickNeighbour(plot: IPlot, step: 1 | -1): () => void {
  return () => {
    const now = plot.selection.picked.op;
    plot.selection.pickOp(now < 0 ? 0 : Math.min(Math.max(now + step, 0), plot.trace.ops.length - 1));
  };
}
