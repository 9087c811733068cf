/**
 * What each part of the sidebar is drawn with.
 */
import type { IEdit } from '../../model/findings';
import type { IEntry } from '../../model/entries';
import type { Language } from '../../model/words/catalogue';
import type { Disposables } from '../disposables';
import type { IRepairsOfTrace } from '../selection';

/** What the buttons of the sidebar do. */
export interface IActions {
  /** Run `%load_ext devtrace` in the kernel. */
  load(): void;
  traceCells(on: boolean): void;
  simulate(devices: number): void;
  /** Show the trace in a tab of its own. */
  open(entry: IEntry): void;
  reveal(entry: IEntry, site: number): void;
  insert(entry: IEntry, edits: readonly IEdit[]): void;
  repairs(entry: IEntry): IRepairsOfTrace;
  /** Find and fix all errors of the notebook, from the cell that failed. */
  fix(): void;
  cancelFix(): void;
  /** Put all changes into their cells. */
  applyFix(): void;
  /** Run the cells that have to run again, in order. */
  /** Take the changes out again. */
  undoFix(): void;
  runFixed(): void;
}

export interface IDrawing {
  readonly body: HTMLElement;
  /** Ends with the drawing. */
  readonly scope: Disposables;
  readonly actions: IActions;
  readonly language: Language;
  /** Which folds the user opened or closed, by their key. */
  readonly open: Map<string, boolean>;
}
