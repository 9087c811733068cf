/**
 * The actions behind the buttons of the sidebar and the commands.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { IEntry } from '../model/entries';
import { sentence, type Language } from '../model/words/catalogue';
import type { IHost } from '../view/selection';
import type { FixStep, IActions } from '../view/sidebar/drawing';
import type { Hosts } from './hosts';
import type { Preferences } from './preferences';
import type { Session } from './session';
import type { Sessions } from './sessions';
import { tabId, traceTab } from './tab';

/** What the actions act on. */
interface IActionParts {
  readonly app: JupyterFrontEnd;
  readonly sessions: Sessions;
  readonly hosts: Hosts;
  readonly preferences: Preferences;
  readonly language: Language;
}

export class SidebarActions implements IActions {
  constructor(private readonly _parts: IActionParts) {}

  load = (): void => this._parts.sessions.current?.connection.load();

  traceCells = (on: boolean): void => {
    const session = this._parts.sessions.current;
    if (session) {
      void this._parts.preferences.keep(session.path, { tracing: on });
      session.connection.ask({ kind: 'trace_cells', on }).catch(() => undefined); // The panel shows why.
    }
  };

  simulate = (devices: number): void => {
    const session = this._parts.sessions.current;
    if (session) {
      void this._simulate(session, devices);
    }
  };

  open = (entry: IEntry): void => {
    const session = this._parts.sessions.current;
    if (session) {
      void this.openIn(session, entry);
    }
  };

  hostOf = ({ outline }: IEntry): IHost => this._parts.hosts.of(outline, () => this._parts.sessions.current);

  goTo = (cell: string, line: number): void => this._parts.hosts.goTo(cell, line, this._parts.sessions.current);

  fix = (step: FixStep): void => {
    const fix = this._parts.sessions.current?.fix;
    if (step === 'run') {
      void fix?.run(this._parts.app.commands);
    } else {
      fix?.[step]();
    }
  };

  /** Shows a trace in a tab of its own; once only. */
  async openIn(session: Session, entry: IEntry): Promise<void> {
    const { language, hosts, app } = this._parts;
    const { label } = entry;
    const id = tabId(entry.key);
    const isOpen = (): boolean => [...app.shell.widgets('main')].some(widget => widget.id === id);
    const whole = isOpen() ? Promise.resolve(null) : session.traces.wholeOf(entry);
    const data = await whole.catch((error: unknown) => {
      const reason = String(error);
      Notification.error(sentence(language, 'notice.gone', { label, reason }), { autoClose: 6000 });
      return null;
    });
    if (data !== null && !isOpen()) {
      const around = (): Session | null => (session.isDisposed ? null : session);
      const tab = traceTab(language, entry, session.sidebar.name, data, trace => hosts.of(trace, around));
      app.shell.add(tab, 'main', { ref: session.widget.id, mode: 'tab-after' });
    }
    app.shell.activateById(id);
  }

  /** Runs the active cell traced, whatever else is switched on; loads devtrace first where it is not. */
  async traceCell(): Promise<void> {
    const session = this._parts.sessions.current;
    const widget = session?.widget;
    if (!session || !(widget instanceof NotebookPanel)) {
      return;
    }
    const cell = widget.content.activeCell;
    if (cell?.model.type !== 'code') {
      Notification.info(sentence(this._parts.language, 'notice.code-only'), { autoClose: 4000 });
      return;
    }
    try {
      await session.connection.ask({ kind: 'trace_next', cell: cell.model.id });
    } catch {
      if (session.connection.link !== 'connected') {
        Notification.warning(sentence(this._parts.language, 'notice.no-kernel'), { autoClose: 6000 });
      }
      return;
    }
    if (!widget.isDisposed) {
      widget.content.activeCellIndex = widget.content.widgets.indexOf(cell);
      widget.content.deselectAll();
      await this._parts.app.commands.execute('notebook:run-cell');
    }
  }

  /** Traces the cell whose error was explained untraced. */
  async traceAgain(session: Session | null, id: string): Promise<void> {
    const content = session?.widget instanceof NotebookPanel ? session.widget.content : null;
    const index = content?.widgets.findIndex(({ model }) => model.id === id) ?? -1;
    if (content && index >= 0) {
      content.activeCellIndex = index;
      await this.traceCell();
    } else {
      Notification.warning(sentence(this._parts.language, 'again.gone'), { autoClose: 5000 });
    }
  }

  /** Kept before the kernel has answered: a restart meanwhile does not make the choice undone, only a refusal does. */
  private async _simulate({ connection, path }: Session, devices: number): Promise<void> {
    const refused = connection.ask({ kind: 'simulate', devices }).then(
      () => false,
      () => connection.link === 'connected'
    );
    const { simulated } = await this._parts.preferences.choices(path);
    await this._parts.preferences.keep(path, { simulated: devices });
    if (await refused) {
      await this._parts.preferences.keep(path, { simulated });
    }
  }
}
