/**
 * One notebook or console: what its outputs and its kernel know, as the one value that the sidebar shows.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { ConsolePanel } from '@jupyterlab/console';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import type { JsonObject } from '../model/findings';
import type { ITraced } from '../model/messages';
import { readTrace } from '../model/read';
import type { IEntry, ISidebar, IWanted } from '../model/sidebar';
import { Connection } from './connection';
import { codeCells, keyOf, Outputs } from './outputs';

export type Place = NotebookPanel | ConsolePanel;

export class Session {
  constructor(readonly widget: Place) {
    this.context = widget instanceof NotebookPanel ? widget.sessionContext : widget.console.sessionContext;
    this.connection = new Connection(this.context);
    this.outputs = new Outputs(widget);
    this.outputs.changed.connect(this._onTraces);
    this.connection.changed.connect(this._onConnection);
    this.context.propertyChanged.connect(this._emit);
    widget.disposed.connect(this.dispose);
  }

  readonly context: ISessionContext;
  readonly connection: Connection;
  readonly outputs: Outputs;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when traces came or went. */
  get traced(): ISignal<this, void> {
    return this._tracesChanged;
  }

  get entries(): readonly IEntry[] {
    return this._entries;
  }

  get isDisposed(): boolean {
    return this.widget.isDisposed;
  }

  /** The path of the notebook, under which its state is kept. */
  get path(): string {
    return this.context.path;
  }

  get sidebar(): ISidebar {
    const { link, version, state, live, inventory } = this.connection;
    return {
      name: this.widget instanceof NotebookPanel ? this.widget.title.label : `${this.widget.title.label} (console)`,
      link,
      version,
      state,
      live,
      entries: this._entries,
      inventory,
      wanted: this._wanted,
      waiting: this._waiting > 0,
      refused: this._refused
    };
  }

  /** Asks the kernel for something and lets the panel say how that goes; `wanted` is shown as if it were done. */
  async wish(act: () => Promise<unknown>, wanted: IWanted = {}): Promise<boolean> {
    this._refused = '';
    this._wanted = { ...this._wanted, ...wanted };
    this._emit();
    const timer = window.setTimeout(() => {
      this._waiting++;
      this._emit();
    }, 400);
    const before = this._waiting;
    try {
      await act();
      this.connection.assume(wanted);
      return true;
    } catch (error) {
      this._refused = error instanceof Error ? error.message : String(error);
      return false;
    } finally {
      window.clearTimeout(timer);
      this._waiting = Math.min(this._waiting, before);
      this._wanted = without(this._wanted, wanted);
      this._emit();
    }
  }

  /** The whole trace: what the output holds, or what the kernel still has. */
  async wholeOf(entry: IEntry): Promise<JsonObject> {
    const data = this.outputs.dataOf(entry);
    if (data !== undefined) {
      return data as JsonObject;
    }
    const answer = await this.connection.ask({ kind: 'fetch', trace: entry.number });
    if (answer.kind !== 'trace') {
      throw new Error('The kernel did not send the trace.');
    }
    return answer.data;
  }

  readonly dispose = (): void => {
    this.connection.dispose();
    this.outputs.dispose();
    Signal.clearData(this);
  };

  private readonly _onConnection = (): void => {
    if (this.connection.traced !== this._fromKernel) {
      this._fromKernel = this.connection.traced;
      this._onTraces();
    }
    this._emit();
  };

  private readonly _onTraces = (): void => {
    const turn = ++this._turn;
    void this._merged().then(entries => {
      if (turn === this._turn && !this.isDisposed) {
        this._entries = entries;
        this._tracesChanged.emit();
        this._emit();
      }
    });
  };

  /** Of a trace that both know, the output's entry with the kernel's number; oldest first. */
  private async _merged(): Promise<IEntry[]> {
    const merged = new Map(this.outputs.entries.map(entry => [entry.key, entry]));
    const mine = new Set(codeCells(this.widget).map(({ id }) => id));
    for (const traced of this._fromKernel) {
      // Another notebook on this kernel shows what its own cells did.
      if (traced.cell === '' || mine.has(traced.cell)) {
        const entry = await this._fromTraced(traced);
        if (entry !== null) {
          merged.set(entry.key, { ...(merged.get(entry.key) ?? entry), number: entry.number });
        }
      }
    }
    return [...merged.values()].sort((a, b) =>
      a.outline.recorded < b.outline.recorded ? -1 : a.outline.recorded > b.outline.recorded ? 1 : a.number - b.number
    );
  }

  private async _fromTraced(traced: ITraced): Promise<IEntry | null> {
    const { trace: number, label, cell, seconds, ops, outline: data } = traced;
    let read = this._read.get(traced);
    if (!read) {
      read = readTrace(data).then(
        outline => ({ key: keyOf(outline.recorded, cell, ops), label, cell, seconds, ops, outline, number }),
        (error: unknown) => {
          console.error(`devtrace: refused from the kernel: ${error instanceof Error ? error.message : String(error)}`);
          return null;
        }
      );
      this._read.set(traced, read);
    }
    return read;
  }

  private readonly _emit = (): void => {
    if (!this.isDisposed) {
      this._changed.emit();
    }
  };

  private _entries: readonly IEntry[] = [];
  private _fromKernel: readonly ITraced[] = [];
  private _wanted: IWanted = {};
  private _waiting = 0;
  private _refused = '';
  private _turn = 0;
  private readonly _read = new WeakMap<ITraced, Promise<IEntry | null>>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _tracesChanged = new Signal<this, void>(this);
}

/** What is wanted still when these wishes have been answered; a newer wish for the same stays. */
function without(wanted: IWanted, answered: IWanted): IWanted {
  const left = Object.entries(wanted).filter(([key, value]) => answered[key as keyof IWanted] !== value);
  return Object.fromEntries(left);
}
