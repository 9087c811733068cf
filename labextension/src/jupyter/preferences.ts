/**
 * The settings, and the state of each notebook on top of them: what the user switched stays switched when the page is loaded again.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal, type ISignal } from '@lumino/signaling';
import type { IChoices } from '../model/connection';
import { translateSchema } from './display-language';

export const PANEL_PLUGIN = 'devtrace:panel';

/** Until the settings are read, and where there are none. */
const DEFAULTS = {
  traceEveryCell: false,
  simulatedDevices: 0,
  maxOps: 100_000,
  explainErrors: true,
  insertWhatHolds: false,
  stripes: true,
  underlines: true
};

type Settings = typeof DEFAULTS;

export class Preferences {
  private _settings: Settings = DEFAULTS;
  private _keeping = Promise.resolve();
  private readonly _changed = new Signal<this, void>(this);

  constructor(
    private readonly _registry: ISettingRegistry | null,
    private readonly _states: IStateDB | null,
    trans: TranslationBundle
  ) {
    void _registry?.load(PANEL_PLUGIN).then(
      settings => {
        const read = (): void => {
          translateSchema(settings.schema, trans);
          this._settings = { ...DEFAULTS, ...(settings.composite as Partial<Settings>) };
          this._changed.emit();
        };
        settings.changed.connect(read);
        read();
      },
      (error: unknown) => {
        console.error(`devtrace: the settings could not be read: ${String(error)}`);
      }
    );
  }

  get settings(): Settings {
    return this._settings;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether what holds is put in without another press, in all notebooks. */
  keepInserting(on: boolean): void {
    void this._registry?.set(PANEL_PLUGIN, 'insertWhatHolds', on);
  }

  /** The user's choices for a fresh kernel of the notebook at this path. */
  async choices(path: string): Promise<IChoices> {
    const { traceEveryCell: tracing, simulatedDevices: simulated } = this._settings;
    const kept = await this._states?.fetch(key(path)).catch(() => undefined);
    return { tracing, simulated, ...(kept as Partial<IChoices> | undefined) };
  }

  /** Keeps one change after the other: each adds to those before it. */
  keep(path: string, choices: Partial<IChoices>): Promise<void> {
    this._keeping = this._keeping.then(() => this._keep(path, choices));
    return this._keeping;
  }

  private async _keep(path: string, choices: Partial<IChoices>): Promise<void> {
    const before = await this._states?.fetch(key(path)).catch(() => undefined);
    await this._states
      ?.save(key(path), { ...(before as Partial<IChoices> | undefined), ...choices })
      .catch(() => undefined);
  }
}

function key(path: string): string {
  return `devtrace:notebook:${path}`;
}
