/**
 * What the buttons of the sidebar and the commands do.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification, type MainAreaWidget } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { IEdit } from '../model/findings';
import type { IEntry } from '../model/sidebar';
import type { IActions } from '../view/sidebar/sidebar';
import type { Guide } from './guide';
import { saveText } from './save';
import type { Preferences } from './preferences';
import type { Session } from './session';
import type { Sessions } from './sessions';
import { spanOfSite } from '../model/source-span';
import { tabId, traceTab, type ITabArgs } from './tab';
import type { Tabs } from './tabs';

/** How long a kernel may take to load devtrace and answer, in ms: the first import of torch is part of it. */
const PATIENCE = 60_000;

export class Driver implements IActions {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _sessions: Sessions,
    private readonly _guide: Guide,
    private readonly _preferences: Preferences,
    private readonly _tabs: Tabs
  ) {}

  load = (): void => {
    const session = this._sessions.current;
    if (session) {
      void this._load(session);
    }
  };

  traceCells = (on: boolean): void => {
    const session = this._sessions.current;
    if (session) {
      void this._preferences.keep(session.path, { tracing: on });
      void this._connected(session).then(
        connected =>
          connected && session.wish(() => session.connection.ask({ kind: 'trace_cells', on }), { tracing: on })
      );
    }
  };

  simulate = (devices: number): void => {
    const session = this._sessions.current;
    if (session) {
      void this._simulate(session, devices);
    }
  };

  open = (entry: IEntry): void => {
    const session = this._sessions.current;
    if (session) {
      void this.openIn(session, entry);
    }
  };

  reveal = (entry: IEntry, site: number): void => {
    void this._guide.reveal(spanOfSite(entry.outline, site), this._sessions.current);
  };

  insert = (entry: IEntry, edit: IEdit): void => {
    void this._guide.insert(entry.outline, edit, this._sessions.current);
  };

  /** Shows a trace in a tab of its own; once only. */
  async openIn(session: Session, entry: IEntry): Promise<void> {
    const { key: trace, label } = entry;
    if (!this._tabs.has(tabId(trace))) {
      const data = await session.wholeOf(entry).catch((error: unknown) => {
        Notification.error(`The trace of ${label} is gone: ${String(error)}`, { autoClose: 6000 });
        return null;
      });
      if (data === null) {
        return;
      }
      const tab = this._tab({ trace, label, name: session.sidebar.name }, Promise.resolve(data));
      this._app.shell.add(tab, 'main', { ref: session.widget.id, mode: 'tab-after' });
    }
    this._app.shell.activateById(tabId(trace));
  }

  /** The tab of a trace that was open before the page was loaded again. */
  restore(args: ITabArgs): void {
    if (!this._tabs.has(tabId(args.trace))) {
      this._app.shell.add(this._tab(args, this._whole(args.trace)), 'main', { activate: false });
    }
  }

  private _tab(args: ITabArgs, data: Promise<unknown>): MainAreaWidget {
    const around = (): Session | null => this._sessions.all.find(holds(args.trace)) ?? null;
    const tab = traceTab(args, data, trace => this._guide.hostOf(trace, around));
    this._tabs.add(tab, args);
    return tab;
  }

  /** A trace, once a notebook that is open has it. */
  private _whole(trace: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const session = this._sessions.all.find(holds(trace));
        const entry = session?.entries.find(({ key }) => key === trace);
        if (session && entry) {
          this._sessions.traced.disconnect(look);
          session.wholeOf(entry).then(resolve, reject);
        }
      };
      this._sessions.traced.connect(look);
      look();
    });
  }

  /** Runs the active cell traced, whatever else is switched on; loads devtrace first where it is not. */
  async traceCell(): Promise<void> {
    const session = this._sessions.current;
    const widget = session?.widget;
    if (!session || !(widget instanceof NotebookPanel)) {
      return;
    }
    const cell = widget.content.activeCell;
    if (cell?.model.type !== 'code') {
      Notification.info('Only a code cell can be traced.', { autoClose: 4000 });
      return;
    }
    if (!(await this._connected(session))) {
      Notification.warning('There is no Python kernel with devtrace that could trace this cell.', { autoClose: 6000 });
      return;
    }
    const wished = await session.wish(() => session.connection.ask({ kind: 'trace_next', cell: cell.model.id }));
    if (wished && !widget.isDisposed) {
      widget.content.activeCellIndex = widget.content.widgets.indexOf(cell);
      widget.content.deselectAll();
      await this._app.commands.execute('notebook:run-cell');
    }
  }

  async exportAs(form: 'html' | 'perfetto'): Promise<void> {
    const session = this._sessions.current;
    const entry = session?.entries.at(-1);
    if (!session || !entry) {
      Notification.info('There is no trace to export yet.', { autoClose: 4000 });
      return;
    }
    try {
      if (entry.number < 0) {
        throw new Error('the kernel that recorded it is gone; run the cell again');
      }
      const file = await session.connection.ask({ kind: 'export', trace: entry.number, form });
      if (file.kind === 'file') {
        saveText(file.name, file.text, form === 'html' ? 'text/html' : 'application/json');
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      Notification.error(`${entry.label} could not be exported: ${reason}`, { autoClose: 8000 });
    }
  }

  private async _simulate(session: Session, devices: number): Promise<void> {
    if (!(await this._connected(session))) {
      return;
    }
    // Kept before the kernel has answered: a restart meanwhile does not make the choice undone, only a refusal does.
    const before = await this._preferences.wishes(session.path);
    await this._preferences.keep(session.path, { simulated: devices });
    const done = await session.wish(() => session.connection.ask({ kind: 'simulate', devices }), {
      simulated: devices
    });
    if (!done && session.connection.link === 'connected') {
      await this._preferences.keep(session.path, { simulated: before.simulated });
    }
  }

  private async _load(session: Session): Promise<boolean> {
    const kernel = session.context.session?.kernel;
    if (!kernel) {
      return false;
    }
    const code = '%load_ext devtrace';
    const reply = await kernel.requestExecute({ code, store_history: false, stop_on_error: false }).done;
    if (reply.content.status === 'error') {
      const { ename, evalue } = reply.content as { ename?: string; evalue?: string };
      await session.wish(() => Promise.reject(new Error(whyNotLoaded(ename ?? 'Error', evalue ?? ''))));
      return false;
    }
    session.connection.retry();
    return true;
  }

  /** Waits for the kernel's answer, and loads devtrace where it is not loaded. */
  private async _connected(session: Session): Promise<boolean> {
    const { connection } = session;
    connection.start();
    const settled = await linkOf(session, ['connected', 'absent']);
    if (settled === 'absent' && (await this._load(session))) {
      return (await linkOf(session, ['connected'])) === 'connected';
    }
    return settled === 'connected';
  }
}

function whyNotLoaded(name: string, message: string): string {
  return name === 'ModuleNotFoundError' && message.includes("'devtrace'")
    ? 'devtrace is not installed where this kernel runs. Run %pip install devtrace in a cell, then load it.'
    : `${name}: ${message}`;
}

function holds(trace: string): (session: Session) => boolean {
  return ({ entries }) => entries.some(({ key }) => key === trace);
}

/** The link once it is one of these, or one that leads nowhere; whatever it is when the patience is over. */
function linkOf(session: Session, wanted: readonly string[]): Promise<string> {
  const ends = [...wanted, 'foreign', 'older', 'newer', 'no-kernel', 'dead', 'nowhere'];
  return new Promise(resolve => {
    const { connection } = session;
    const settle = (): void => {
      if (ends.includes(connection.link) || session.isDisposed) {
        finish();
      }
    };
    const finish = (): void => {
      window.clearTimeout(timer);
      connection.changed.disconnect(settle);
      resolve(connection.link);
    };
    const timer = window.setTimeout(finish, PATIENCE);
    connection.changed.connect(settle);
    settle();
  });
}
