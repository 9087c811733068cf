/**
 * The timeline by keyboard alone. Keys that it takes do not reach the notebook, whose shortcuts they would fire.
 */
import { pan, showAll, showPicked, zoom } from '../layout/timeline-state';
import { neighbourFinding, neighbourOp } from '../model/picks';
import type { Disposables } from './disposables';
import type { IPlot } from './timeline-pointer';

export function listenToKeys(plot: IPlot, disposables: Disposables): void {
  disposables.listen(plot.node, 'keydown', event => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : actionOf(plot, event);
    if (act) {
      act();
      plot.follow();
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

function actionOf(plot: IPlot, { key, shiftKey }: KeyboardEvent): (() => void) | undefined {
  switch (key) {
    case 'ArrowLeft':
    case 'ArrowRight': {
      const step = key === 'ArrowLeft' ? -1 : 1;
      return shiftKey ? () => pickNeighbour(plot, step) : () => plot.change(pan(plot.state, step * 0.2));
    }
    case 'ArrowUp':
    case 'ArrowDown':
      return () => {
        plot.node.scrollTop += key === 'ArrowUp' ? -40 : 40;
      };
    case '+':
    case '=':
    case '-':
      return () => plot.change(zoom(plot.state, key === '-' ? 1 / 0.6 : 0.6));
    case 'Home':
      return () => plot.change(showAll(plot.state));
    case 'Enter':
      return () => plot.change(showPicked(plot.state));
    case 'Escape':
      return () => plot.selection.clear();
    case 'Tab':
      return pickNextFinding(plot, shiftKey ? -1 : 1);
    default:
      return undefined;
  }
}

/** Tab goes from finding to finding, and on out of the timeline after the last: it never traps the keyboard. */
function pickNextFinding({ state, selection }: IPlot, step: 1 | -1): (() => void) | undefined {
  const finding = neighbourFinding(state.timeline.trace, selection.picked, step);
  return finding < 0 ? undefined : () => selection.pickFinding(finding);
}

function pickNeighbour({ state, selection }: IPlot, step: 1 | -1): void {
  selection.pickOp(neighbourOp(state.timeline.trace, selection.picked, step));
}
