/**
 * The plugin of the sidebar: puts together sessions, page, commands, stripes and settings.
 */
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { NOWHERE } from '../model/sidebar';
import { stripesOf } from '../model/stripes';
import { addCommands } from './commands';
import { Driver } from './driver';
import { Guide } from './guide';
import { setHost } from './host';
import { codeCells } from './outputs';
import { PANEL_PLUGIN, Preferences } from './preferences';
import type { Session } from './session';
import { Sessions } from './sessions';
import { SidebarWidget } from './sidebar';
import { stripeStore } from './stripes-plugin';
import { Tabs } from './tabs';

const panel: JupyterFrontEndPlugin<void> = {
  id: PANEL_PLUGIN,
  description: 'Shows what runs and lives on which device, for each notebook and console.',
  autoStart: true,
  optional: [
    INotebookTracker,
    IConsoleTracker,
    ILayoutRestorer,
    ICommandPalette,
    ISettingRegistry,
    IStateDB,
    IDocumentManager,
    ITranslator
  ],
  activate
};

export default panel;

function activate(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker | null,
  consoles: IConsoleTracker | null,
  restorer: ILayoutRestorer | null,
  palette: ICommandPalette | null,
  registry: ISettingRegistry | null,
  states: IStateDB | null,
  documents: IDocumentManager | null,
  translator: ITranslator | null
): void {
  const trans = (translator ?? nullTranslator).load('devtrace');
  const sessions = new Sessions(app.shell, notebooks, consoles);
  const preferences = new Preferences(registry, states);
  const guide = new Guide(app.shell, sessions, documents);
  const tabs = new Tabs();
  const driver = new Driver(app, sessions, guide, preferences, tabs);
  const stripes = new Stripes(sessions, preferences);
  preferences.changed.connect(() => {
    document.body.dataset['dtPalette'] = preferences.settings.palette;
  });
  setHost((trace, element) => guide.hostOf(trace, () => sessions.around(element)));

  const sidebar = new SidebarWidget(driver, () => {
    look();
  });
  const look = (): void => {
    for (const session of sessions.all) {
      session.connection.visible = sidebar.isVisible && session === sessions.current;
    }
    if (sidebar.isVisible) {
      sessions.current?.connection.start();
    }
    sidebar.display(sessions.current?.sidebar ?? NOWHERE);
  };
  const welcome = (session: Session): void => {
    session.changed.connect(() => {
      if (session === sessions.current) {
        sidebar.display(session.sidebar);
        app.commands.notifyCommandChanged('devtrace:trace-every-cell');
      }
    });
    session.connection.greeted.connect((_, fresh) => {
      void greet(session, fresh, preferences);
    });
    if (codeCells(session.widget).some(({ sharedModel }) => sharedModel.getSource().includes('devtrace'))) {
      session.connection.start();
    }
  };
  sessions.all.forEach(welcome);
  sessions.added.connect((_, session) => {
    void session.context.ready.then(() => {
      if (!session.isDisposed) {
        welcome(session);
        look();
      }
    });
  });
  sessions.currentChanged.connect(look);
  app.shell.add(sidebar, 'right', { rank: 700 });
  addCommands({ app, driver, sessions, clearStripes: stripes.clear, palette, trans });
  if (restorer) {
    restorer.add(sidebar, sidebar.id);
    tabs.keepIn(restorer);
  }
}

/** In a kernel in which nobody has switched anything yet, what the user wants for this notebook. */
async function greet(session: Session, fresh: boolean, preferences: Preferences): Promise<void> {
  const { connection } = session;
  const { tracing, simulated } = await preferences.wishes(session.path);
  await session.wish(async () => {
    await connection.ask({ kind: 'limit', max_ops: preferences.settings.maxOps });
    if (fresh && tracing) {
      await connection.ask({ kind: 'trace_cells', on: true });
    }
    if (fresh && simulated > 0) {
      await connection.ask({ kind: 'simulate', devices: simulated });
    }
  });
}

/** Keeps the stripes in the cells in step with the traces and the settings. */
class Stripes {
  constructor(
    private readonly _sessions: Sessions,
    private readonly _preferences: Preferences
  ) {
    _sessions.all.forEach(session => {
      this._follow(session);
    });
    _sessions.added.connect((_, session) => {
      this._follow(session);
    });
    _preferences.changed.connect(() => {
      _sessions.all.forEach(this._update);
    });
  }

  /** Takes the stripes of the current notebook away, until there is a new trace. */
  readonly clear = (): void => {
    const session = this._sessions.current;
    if (session) {
      session.entries.forEach(({ key }) => this._cleared.add(key));
      this._update(session);
    }
  };

  private _follow(session: Session): void {
    session.traced.connect(this._update);
    this._update(session);
  }

  private readonly _update = (session: Session): void => {
    const { stripes, underlines } = this._preferences.settings;
    const entries = session.entries.filter(({ key }) => !this._cleared.has(key));
    const cells = [...stripesOf(entries)].map(
      ([id, cell]) => [id, { stripes: stripes ? cell.stripes : [], marks: underlines ? cell.marks : [] }] as const
    );
    stripeStore.set(session, new Map(cells));
  };

  private readonly _cleared = new Set<string>();
}
