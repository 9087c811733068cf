/**
 * What a report of a trace, in an output, a tab or the panel, can ask of the notebook that it is of.
 */
import { NotebookPanel } from '@jupyterlab/notebook';
import type { IEntry } from '../model/entries';
import { spanOfSite } from '../model/source-span';
import type { ITrace } from '../model/trace';
import type { IHost, ITrials } from '../view/selection';
import type { EditorNavigator } from './navigator';
import type { Preferences } from './preferences';
import type { Session } from './session';
import type { Sessions } from './sessions';

export class Hosts {
  constructor(
    private readonly _sessions: Sessions,
    private readonly _navigator: EditorNavigator,
    private readonly _preferences: Preferences
  ) {}

  /** `around` finds the notebook that shows the trace. */
  of(trace: ITrace, around: () => Session | null): IHost {
    return {
      reveal: site => {
        void this._navigator.reveal(spanOfSite(trace, site), around());
      },
      insert: edits => {
        void this._navigator.insert(trace, edits, around());
      },
      repairs: {
        of: finding => around()?.repairOf(trace.recorded, finding) ?? null,
        subscribe: listener => this._follow(around, listener)
      },
      trials: this._trials(trace, around)
    };
  }

  goTo(cellId: string, line: number, near: Session | null): void {
    const span = { file: '', cell: -1, cellId, line, column: -1, endLine: line, endColumn: -1, text: null };
    void this._navigator.reveal(span, near);
  }

  /** Calls the listener when the notebook comes, and when something of its fixes is new. */
  private _follow(around: () => Session | null, listener: () => void): () => void {
    let known: readonly unknown[] = [];
    const look = (): void => {
      const session = around();
      const now = [session, session?.repairs, session?.fix.shown];
      if (now.some((each, i) => each !== known[i])) {
        known = now;
        listener();
      }
    };
    this._sessions.changed.connect(look);
    return () => {
      this._sessions.changed.disconnect(look);
    };
  }

  private _trials({ recorded }: ITrace, around: () => Session | null): ITrials {
    const preferences = this._preferences;
    const entry = (): IEntry | undefined => around()?.entries.find(({ outline }) => outline.recorded === recorded);
    return {
      isPossible: () => around()?.widget instanceof NotebookPanel,
      of: finding => {
        const shown = around()?.fix.shown ?? null;
        return shown?.tried?.recorded === recorded && shown.tried.finding === finding ? shown : null;
      },
      get inserts() {
        return preferences.settings.insertWhatHolds;
      },
      keepInserting: on => preferences.keepInserting(on),
      begin: finding => {
        around()?.fix.begin(entry()?.cell, { recorded, finding }, preferences.settings.insertWhatHolds);
      },
      cancel: () => around()?.fix.cancel(),
      apply: () => around()?.fix.apply(),
      undo: () => around()?.fix.undo()
    };
  }
}
