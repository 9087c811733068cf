/**
 * One notebook or console: the traces of its outputs and of its kernel, as the one value that the sidebar shows.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import type { JsonObject } from '../model/findings';
import type { ITraced } from '../model/messages';
import { withCellIds, type IShownCell } from '../model/cell-ids';
import { readOutline } from '../model/outline';
import type { IEntry, ISidebar } from '../model/sidebar';
import { Connection } from './connection';
import { codeCells, keyOf, Outputs, type CodeWidget } from './outputs';

function shownCell({ id, executionCount: count, sharedModel }: ICodeCellModel): IShownCell {
  return { id, count, source: sharedModel.getSource() };
}

export class Session {
  readonly context: ISessionContext;
  readonly connection: Connection;
  readonly outputs: Outputs;
  private _entries: readonly IEntry[] = [];
  private _fromKernel: readonly ITraced[] = [];
  private _turn = 0;
  private readonly _read = new WeakMap<ITraced, Promise<IEntry | null>>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _tracesChanged = new Signal<this, void>(this);

  constructor(readonly widget: CodeWidget) {
    this.context = widget instanceof NotebookPanel ? widget.sessionContext : widget.console.sessionContext;
    this.connection = new Connection(this.context);
    this.outputs = new Outputs(widget);
    this.outputs.changed.connect(this._onTraces);
    this.connection.changed.connect(this._onConnection);
    this.context.propertyChanged.connect(this._emit);
    widget.disposed.connect(this.dispose);
  }

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
    const { version, state, live, inventory, pending, isSlow, refused } = this.connection.state;
    const { label } = this.widget.title;
    const name = this.widget instanceof NotebookPanel ? label : `${label} (console)`;
    const { link } = this.connection;
    return { name, link, version, state, live, entries: this._entries, inventory, pending, isSlow, refused };
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
    if (this.connection.state.traces !== this._fromKernel) {
      this._fromKernel = this.connection.state.traces;
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
    const shown = codeCells(this.widget).map(shownCell);
    return [...merged.values()]
      .map(entry => ({ ...entry, outline: withCellIds(entry.outline, shown) }))
      .sort((a, b) =>
        a.outline.recorded < b.outline.recorded ? -1 : a.outline.recorded > b.outline.recorded ? 1 : a.number - b.number
      );
  }

  private async _fromTraced(traced: ITraced): Promise<IEntry | null> {
    const { trace: number, label, cell, seconds, ops, outline: data } = traced;
    let read = this._read.get(traced);
    if (!read) {
      read = readOutline(data).then(
        ({ outline }) => ({ key: keyOf(outline.recorded, cell, ops), label, cell, seconds, ops, outline, number }),
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
}
