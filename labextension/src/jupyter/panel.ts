/**
 * The plugin of the sidebar: puts together sessions, page, commands, stripes and settings.
 */
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { IEntry } from '../model/entries';
import { NOWHERE } from '../model/sidebar';
import { stripesOf } from '../model/stripes';
import { languageAround } from '../view/language';
import { SidebarActions } from './actions';
import { addCommands } from './commands';
import { chosenLanguage } from './display-language';
import { offerHosts } from './host';
import { Hosts } from './hosts';
import { EditorNavigator } from './navigator';
import { codeCells } from './cells';
import { PANEL_PLUGIN, Preferences } from './preferences';
import type { Session } from './session';
import { Sessions } from './sessions';
import { SIDEBAR_ID, SidebarWidget } from './sidebar';
import type { StripeStore } from './stripes';
import { IStripeStore } from './stripes-plugin';

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
    ITranslator,
    IStripeStore
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
  translator: ITranslator | null,
  store: StripeStore | null
): void {
  const known = translator ?? nullTranslator;
  const trans = known.load('devtrace');
  document.body.dataset['dtLanguage'] = known.languageCode;
  const language = languageAround(document);
  const sessions = new Sessions(app.shell, notebooks, consoles, language);
  const preferences = new Preferences(registry, states, trans);
  const navigator = new EditorNavigator(app.shell, sessions, documents, language);
  const hosts = new Hosts(sessions, navigator, preferences);
  const actions = new SidebarActions({ app, sessions, hosts, preferences, language });
  if (store) {
    showStripes(sessions, preferences, store);
  }
  offerHosts((trace, element) => ({
    ...hosts.of(trace, () => sessions.around(element)),
    traceAgain: cell => {
      void actions.traceAgain(sessions.around(element), cell);
    },
    fixNotebook: () => {
      fixNotebook(app.shell, sessions.around(element), element);
    }
  }));
  const tag = chosenLanguage(known, registry);
  const sidebar = showCurrent({ app, sessions, actions, preferences, tag });
  app.shell.add(sidebar, 'right', { rank: 700 });
  addCommands({ app, actions, sessions, palette, trans });
  restorer?.add(sidebar, sidebar.id);
}

/** Fixes a notebook as far as the cell that shows a report; the panel shows what comes. */
function fixNotebook(shell: JupyterFrontEnd.IShell, session: Session | null, element: Element): void {
  if (session?.widget instanceof NotebookPanel) {
    const cell = session.widget.content.widgets.find(({ node }) => node.contains(element));
    shell.activateById(SIDEBAR_ID);
    session.fix.begin(cell?.model.id);
  }
}

interface IShowing {
  readonly app: JupyterFrontEnd;
  readonly sessions: Sessions;
  readonly actions: SidebarActions;
  readonly preferences: Preferences;
  readonly tag: Promise<string>;
}

/** The panel, which shows the current session from here on. */
function showCurrent({ app, sessions, actions, preferences, tag }: IShowing): SidebarWidget {
  const sidebar = new SidebarWidget(actions, () => {
    show();
  });
  const show = (): void => {
    for (const session of sessions.all) {
      session.connection.show(sidebar.isVisible && session === sessions.current);
    }
    if (sidebar.isVisible) {
      sessions.current?.connection.start();
    }
    sidebar.display(sessions.current?.sidebar ?? NOWHERE);
  };
  const follow = (session: Session): void => {
    const { connection } = session;
    session.changed.connect(() => {
      if (session === sessions.current) {
        sidebar.display(session.sidebar);
        app.commands.notifyCommandChanged('devtrace:trace-every-cell');
      }
    });
    connection.greeted.connect(() => {
      void Promise.all([preferences.choices(session.path), tag]).then(([choices, chosen]) => {
        const { maxOps, explainErrors } = preferences.settings;
        connection.choose(choices, maxOps, chosen, explainErrors);
      });
    });
    if (codeCells(session.widget).some(({ sharedModel }) => sharedModel.getSource().includes('devtrace'))) {
      connection.start();
    }
  };
  sessions.each(session => {
    void session.context.ready.then(() => {
      if (!session.isDisposed) {
        follow(session);
        show();
      }
    });
  });
  sessions.currentChanged.connect(show);
  return sidebar;
}

/** Keeps the stripes in the cells in step with the traces and the settings. */
function showStripes(sessions: Sessions, preferences: Preferences, store: StripeStore): void {
  const shown = new WeakMap<Session, readonly IEntry[]>();
  const update = (session: Session): void => {
    const { stripes, underlines } = preferences.settings;
    const cells = [...stripesOf(session.entries)].map(
      ([id, cell]) => [id, { stripes: stripes ? cell.stripes : [], marks: underlines ? cell.marks : [] }] as const
    );
    shown.set(session, session.entries);
    store.set(session, new Map(cells));
  };
  sessions.changed.connect((_, session) => {
    if (shown.get(session) !== session.entries) {
      update(session);
    }
  });
  preferences.changed.connect(() => {
    sessions.all.forEach(update);
  });
}
