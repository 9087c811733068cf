/**
 * Rows that are one tab stop: up and down go from row to row, Enter and Space choose.
 */
import type { Scope } from './scope';

export function listenToRows(
  grid: HTMLElement,
  rows: readonly HTMLElement[],
  choose: (at: number) => void,
  scope: Scope
): void {
  scope.listen(grid, 'keydown', event => {
    const at = rows.indexOf(event.target as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1, Enter: 0, ' ': 0 }[event.key];
    if (at >= 0 && step !== undefined && at + step >= 0 && at + step < rows.length) {
      event.preventDefault();
      event.stopPropagation();
      choose(at + step);
      rows[at + step].focus();
    }
  });
}
