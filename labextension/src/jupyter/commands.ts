/**
 * The commands, for the palette, the menus, shortcuts and the cell toolbar.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { InputDialog, type ICommandPalette } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { shownState } from '../model/sidebar';
import { CHOICES } from '../view/sidebar/controls';
import type { SidebarActions } from './actions';
import { traceIcon } from './icon';
import { viewIn } from './navigator';
import type { Sessions } from './sessions';
import { SIDEBAR_ID } from './sidebar';
import { toggleLedger } from './stripes';

interface ICommandParts {
  readonly app: JupyterFrontEnd;
  readonly actions: SidebarActions;
  readonly sessions: Sessions;
  readonly palette: ICommandPalette | null;
  readonly trans: TranslationBundle;
}

export function addCommands(parts: ICommandParts): void {
  const { app, palette } = parts;
  const commands = commandsOf(parts);
  for (const [id, options] of Object.entries(commands)) {
    app.commands.addCommand(id, options);
    palette?.addItem({ command: id, category: 'Devtrace' });
  }
  parts.sessions.currentChanged.connect(() => {
    Object.keys(commands).forEach(id => {
      app.commands.notifyCommandChanged(id);
    });
  });
}

type Commands = Record<string, CommandRegistry.ICommandOptions>;

const NO_ARGUMENTS = { args: { type: 'object', properties: {} } };

function commandsOf(parts: ICommandParts): Commands {
  const commands = { ...tracing(parts), ...showing(parts) };
  return Object.fromEntries(
    Object.entries(commands).map(([id, options]) => [id, { describedBy: NO_ARGUMENTS, ...options }])
  );
}

function hasSession({ sessions }: ICommandParts): () => boolean {
  return () => sessions.current !== null;
}

function hasNotebook({ sessions }: ICommandParts): () => boolean {
  return () => sessions.current?.widget instanceof NotebookPanel;
}

/** On a Markdown cell there is nothing to trace. */
function hasCodeCell({ sessions }: ICommandParts): () => boolean {
  return () => {
    const widget = sessions.current?.widget;
    return !(widget instanceof NotebookPanel) || widget.content.activeCell?.model.type !== 'markdown';
  };
}

/** What is traced, and on which devices. */
function tracing(parts: ICommandParts): Commands {
  const { actions, sessions, trans } = parts;
  const isTracing = (): boolean => sessions.current !== null && shownState(sessions.current.connection.state).tracing;
  return {
    'devtrace:trace-cell': {
      label: trans.__('Trace This Cell'),
      caption: trans.__('Run this cell and show what ran on which device'),
      icon: traceIcon,
      isEnabled: hasNotebook(parts),
      isVisible: hasCodeCell(parts),
      execute: () => actions.traceCell()
    },
    'devtrace:trace-every-cell': {
      label: trans.__('Trace Every Cell'),
      caption: trans.__('Trace each cell of this notebook when it runs'),
      isEnabled: hasSession(parts),
      isToggled: isTracing,
      execute: () => {
        actions.traceCells(!isTracing());
      }
    },
    'devtrace:simulate-devices': {
      label: trans.__('Simulate Devices…'),
      caption: trans.__('Give this notebook pretended CUDA devices'),
      describedBy: { args: { type: 'object', properties: { devices: { type: 'number' } } } },
      isEnabled: hasSession(parts),
      execute: async args => {
        const devices = typeof args['devices'] === 'number' ? args['devices'] : await askDevices(trans);
        if (devices !== null) {
          actions.simulate(devices);
        }
      }
    }
  };
}

function showing(parts: ICommandParts): Commands {
  const { app, actions, sessions, trans } = parts;
  return {
    'devtrace:show-panel': {
      label: trans.__('Show Panel'),
      caption: trans.__('Show what runs and lives on which device'),
      icon: traceIcon,
      execute: () => {
        app.shell.activateById(SIDEBAR_ID);
      }
    },
    'devtrace:open-last-trace': {
      label: trans.__('Open Last Trace'),
      caption: trans.__('Show the newest trace of this notebook in a tab'),
      isEnabled: () => (sessions.current?.entries.length ?? 0) > 0,
      execute: async () => {
        const session = sessions.current;
        const entry = session?.entries.at(-1);
        if (session && entry) {
          await actions.openIn(session, entry);
        }
      }
    },
    'devtrace:show-ledger': {
      label: trans.__('Show Ledger of This Line'),
      caption: trans.__('Say what the line with the cursor did on which device'),
      isEnabled: hasNotebook(parts),
      execute: () => {
        const widget = sessions.current?.widget;
        const cell = widget instanceof NotebookPanel ? widget.content.activeCell : null;
        const view = cell && viewIn(cell);
        return view !== null && toggleLedger(view);
      }
    }
  };
}

async function askDevices(trans: TranslationBundle): Promise<number | null> {
  const items = CHOICES.map(devices => (devices === 0 ? trans.__('off') : `cuda:${devices}`));
  const { value } = await InputDialog.getItem({ title: trans.__('Simulated CUDA devices'), items });
  return value === null ? null : CHOICES[items.indexOf(value)];
}
