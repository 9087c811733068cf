/**
 * Rows that are one tab stop: up and down go from row to row, Enter and Space choose.
 */
import type { Disposables } from './disposables';

const ROW_KEYS = { ArrowDown: 1, ArrowUp: -1 };

/** The index that a key leads to from `at`, which may be past an end: by its step, or to the first or last; null for other keys. */
export function steppedTo(
  key: string,
  at: number,
  count: number,
  steps: Readonly<Record<string, number>> = ROW_KEYS
): number | null {
  if (key === 'Home' || key === 'End') {
    return key === 'Home' ? 0 : count - 1;
  }
  return Object.hasOwn(steps, key) ? at + steps[key] : null;
}

export function listenToRows(
  grid: HTMLElement,
  rows: readonly HTMLElement[],
  choose: (at: number) => void,
  disposables: Disposables
): void {
  disposables.listen(grid, 'keydown', event => {
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
