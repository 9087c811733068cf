/**
 * What each part of the sidebar is drawn with.
 */
import type { IEntry } from '../../model/entries';
import type { Language } from '../../model/words/catalogue';
import type { Disposables } from '../disposables';
import type { IHost } from '../selection';

/** What "Fix the notebook" is told: to begin, to put its changes in or take them out, to run what they changed. */
export type FixStep = 'begin' | 'cancel' | 'apply' | 'undo' | 'run';

/** What the buttons of the sidebar do. */
export interface IActions {
  /** Run `%load_ext devtrace` in the kernel. */
  load(): void;
  traceCells(on: boolean): void;
  simulate(devices: number): void;
  /** Show the trace in a tab of its own. */
  open(entry: IEntry): void;
  /** What the findings of a trace can ask for. */
  hostOf(entry: IEntry): IHost;
  fix(step: FixStep): void;
  /** Select a line of a cell. */
  goTo(cell: string, line: number): void;
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
