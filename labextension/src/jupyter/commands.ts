/**
 * The commands, for the palette, the menus, shortcuts and the cell toolbar.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { InputDialog, type ICommandPalette } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Driver } from './driver';
import { viewIn } from './guide';
import { traceIcon } from './icon';
import type { Sessions } from './sessions';
import { SIDEBAR_ID } from './sidebar';
import { toggleLedger } from './stripes';
import { RESTORE } from './tabs';

const CHOICES = [0, 1, 2, 4];

export interface ICommandParts {
  readonly app: JupyterFrontEnd;
  readonly driver: Driver;
  readonly sessions: Sessions;
  readonly clearStripes: () => void;
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
  app.commands.addCommand(RESTORE, {
    describedBy: { args: { type: 'object', properties: {} } },
    execute: ({ trace, label, name }) => {
      if (typeof trace === 'string' && typeof label === 'string' && typeof name === 'string') {
        parts.driver.restore({ trace, label, name });
      }
    }
  });
  parts.sessions.currentChanged.connect(() => {
    Object.keys(commands).forEach(id => {
      app.commands.notifyCommandChanged(id);
    });
  });
}

function commandsOf(parts: ICommandParts): Record<string, CommandRegistry.ICommandOptions> {
  const { app, driver, sessions, clearStripes, trans } = parts;
  const hasSession = (): boolean => sessions.current !== null;
  const hasNotebook = (): boolean => sessions.current?.widget instanceof NotebookPanel;
  const describedBy = { args: { type: 'object', properties: {} } };
  return {
    'devtrace:trace-cell': {
      label: trans.__('Trace This Cell'),
      caption: trans.__('Run this cell and show where its devices meet'),
      icon: traceIcon,
      describedBy,
      isEnabled: hasNotebook,
      execute: () => driver.traceCell()
    },
    'devtrace:trace-every-cell': {
      label: trans.__('Trace Every Cell'),
      caption: trans.__('Trace each cell of this notebook when it runs'),
      describedBy,
      isEnabled: hasSession,
      isToggled: () => sessions.current?.connection.state?.tracing ?? false,
      execute: () => {
        driver.traceCells(!(sessions.current?.connection.state?.tracing ?? false));
      }
    },
    'devtrace:show-panel': {
      label: trans.__('Show Panel'),
      caption: trans.__('Show what runs and lives on which device'),
      icon: traceIcon,
      describedBy,
      execute: () => {
        app.shell.activateById(SIDEBAR_ID);
      }
    },
    'devtrace:open-last-trace': {
      label: trans.__('Open Last Trace'),
      caption: trans.__('Show the newest trace of this notebook in a tab'),
      describedBy,
      isEnabled: () => (sessions.current?.entries.length ?? 0) > 0,
      execute: async () => {
        const session = sessions.current;
        const entry = session?.entries.at(-1);
        if (session && entry) {
          await driver.openIn(session, entry);
        }
      }
    },
    'devtrace:simulate-devices': {
      label: trans.__('Simulate Devices…'),
      caption: trans.__('Give this notebook pretended CUDA devices'),
      describedBy: { args: { type: 'object', properties: { devices: { type: 'number' } } } },
      isEnabled: hasSession,
      execute: async args => {
        const devices = typeof args['devices'] === 'number' ? args['devices'] : await askDevices(trans);
        if (devices !== null) {
          driver.simulate(devices);
        }
      }
    },
    'devtrace:clear-stripes': {
      label: trans.__('Clear Stripes'),
      caption: trans.__('Take the device stripes out of this notebook until the next trace'),
      describedBy,
      isEnabled: hasSession,
      execute: clearStripes
    },
    'devtrace:show-ledger': {
      label: trans.__('Show Ledger of This Line'),
      caption: trans.__('Say what the line with the cursor did on which device'),
      describedBy,
      isEnabled: hasNotebook,
      execute: () => {
        const widget = sessions.current?.widget;
        const view =
          widget instanceof NotebookPanel && widget.content.activeCell ? viewIn(widget.content.activeCell) : null;
        return view !== null && toggleLedger(view);
      }
    },
    'devtrace:export-html': {
      label: trans.__('Export Last Trace as HTML'),
      describedBy,
      isEnabled: hasSession,
      execute: () => driver.exportAs('html')
    },
    'devtrace:export-perfetto': {
      label: trans.__('Export Last Trace for Perfetto'),
      describedBy,
      isEnabled: hasSession,
      execute: () => driver.exportAs('perfetto')
    }
  };
}

async function askDevices(trans: TranslationBundle): Promise<number | null> {
  const items = CHOICES.map(devices => (devices === 0 ? trans.__('off') : `cuda:${devices}`));
  const { value } = await InputDialog.getItem({ title: trans.__('Simulated CUDA devices'), items });
  return value === null ? null : CHOICES[items.indexOf(value)];
}
