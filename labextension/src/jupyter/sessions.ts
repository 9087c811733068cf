/**
 * All notebooks and consoles that are open, and the one that the user is at.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import type { CodeWidget } from './cells';
import type { Language } from '../model/words/catalogue';
import { Session } from './session';

export class Sessions {
  private _current: Session | null = null;
  private readonly _sessions = new Map<Widget, Session>();
  private readonly _currentChanged = new Signal<this, Session | null>(this);
  private readonly _changed = new Signal<this, Session>(this);
  private readonly _added = new Signal<this, Session>(this);

  constructor(
    shell: JupyterFrontEnd.IShell,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    private readonly _language: Language
  ) {
    for (const tracker of [notebooks, consoles]) {
      tracker?.forEach((widget: CodeWidget) => {
        this._add(widget, shell);
      });
      tracker?.widgetAdded.connect((_: unknown, widget: CodeWidget) => {
        this._add(widget, shell);
      });
    }
    // Not the trackers' signal: they go by the focus, which may be in the panel.
    shell.currentChanged?.connect(() => {
      this._choose(shell.currentWidget);
    });
    this._choose(shell.currentWidget);
  }

  /** The session that the user was at last, null when none is open. */
  get current(): Session | null {
    return this._current;
  }

  get currentChanged(): ISignal<this, Session | null> {
    return this._currentChanged;
  }

  /** Calls `follow` for each session that there is, and for each that comes. */
  each(follow: (session: Session) => void): void {
    this.all.forEach(follow);
    this._added.connect((_, session) => {
      follow(session);
    });
  }

  /** Emitted when something of a session has changed. */
  get changed(): ISignal<this, Session> {
    return this._changed;
  }

  get all(): readonly Session[] {
    return [...this._sessions.values()];
  }

  /** The session whose page has this element. */
  around(element: Element | null): Session | null {
    return this.all.find(({ widget }) => element !== null && widget.node.contains(element)) ?? null;
  }

  private _add(widget: CodeWidget, shell: JupyterFrontEnd.IShell): void {
    if (this._sessions.has(widget)) {
      return;
    }
    const session = new Session(widget, this._language);
    this._sessions.set(widget, session);
    session.changed.connect(() => {
      this._changed.emit(session);
    });
    widget.disposed.connect(() => {
      this._sessions.delete(widget);
      if (this._current === session) {
        this._choose(null);
      }
    });
    this._added.emit(session);
    if (this._current === null || shell.currentWidget === widget) {
      this._choose(widget);
    }
  }

  /** Another kind of tab (a trace, a file) leaves the panel with the notebook that was there before. */
  private _choose(widget: Widget | null): void {
    const known = widget ? this._sessions.get(widget) : undefined;
    const next = known ?? (this._current && !this._current.isDisposed ? this._current : (this.all.at(-1) ?? null));
    if (next !== this._current) {
      this._current = next;
      this._currentChanged.emit(next);
    }
  }
}
