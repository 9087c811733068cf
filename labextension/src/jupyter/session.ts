/**
 * One notebook or console: the traces of its outputs and of its kernel, as the one value that the sidebar shows.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import type { IEdit, JsonObject } from '../model/findings';
import type { ITraced } from '../model/messages';
import { NumberedCells, withCellIds, type IShownCell } from '../model/cell-ids';
import { readOutline } from '../model/outline';
import { editKey, fixedIn, repairsOf, type IRepair, type Repairs } from '../model/repairs';
import { onePerTrace, withEarlier, withRunSince, type IEntry } from '../model/entries';
import type { ISidebar } from '../model/sidebar';
import { sentence, type Language } from '../model/words/catalogue';
import { CellStates } from './cell-states';
import { Connection } from './connection';
import { NotebookFix } from './notebook-fix';
import { codeCells, keyOf, Outputs, type CodeWidget } from './outputs';

function shownCell({ id, executionCount: count, sharedModel }: ICodeCellModel): IShownCell {
  return { id, count, source: sharedModel.getSource() };
}

export class Session {
  readonly context: ISessionContext;
  readonly connection: Connection;
  readonly outputs: Outputs;
  readonly fix: NotebookFix;
  private readonly _cells: CellStates;
  private readonly _numbered = new NumberedCells();
  private _entries: readonly IEntry[] = [];
  private _fromKernel: readonly ITraced[] = [];
  private _repairs: Repairs = new Map();
  private _fixed: readonly string[] = [];
  private _repairsText = '';
  private readonly _inFiles = new Set<string>();
  private _attempt = -1;
  /** The kernel has said which traces it has. */
  private _isKnown = false;
  /** Traces whose outputs came while this kernel was connected: it recorded them, whether or not it has listed them yet. */
  private readonly _live = new Set<string>();
  private readonly _seen = new Set<string>();
  private _turn = 0;
  private readonly _read = new WeakMap<ITraced, Promise<IEntry | null>>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _tracesChanged = new Signal<this, void>(this);
  private readonly _repaired = new Signal<this, void>(this);

  constructor(
    readonly widget: CodeWidget,
    private readonly _language: Language
  ) {
    this.context = widget instanceof NotebookPanel ? widget.sessionContext : widget.console.sessionContext;
    this.connection = new Connection(this.context, _language);
    this.outputs = new Outputs(widget, _language);
    this._cells = new CellStates(widget);
    this.fix = new NotebookFix(widget, this.connection, _language, this._emit);
    this.outputs.changed.connect(this._onTraces);
    this._cells.changed.connect(this._onCells);
    this._cells.changed.connect(this._onFixedCells);
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

  /** Emitted when fixes were put in, ran, or were taken back. */
  get repaired(): ISignal<this, void> {
    return this._repaired;
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
    const name =
      this.widget instanceof NotebookPanel ? label : sentence(this._language, 'panel.console', { name: label });
    const { link } = this.connection;
    const hasCells = this.widget instanceof NotebookPanel;
    const { _entries: entries, _repairs: repairs, _fixed: fixed } = this;
    const shown = { name, link, version, state, live, entries, repairs, fixed, inventory, pending, isSlow, refused };
    return { ...shown, hasCells, fix: hasCells ? this.fix.shown : null };
  }

  /** What became of the fix of a finding of the trace that was recorded then. */
  repairOf(recorded: string, finding: number): IRepair | null {
    const entry = this._entries.find(({ outline }) => outline.recorded === recorded);
    return (entry && this._repairs.get(entry.key)?.get(finding)) ?? null;
  }

  /** The id of the cell that has this number, or had it before it ran again. */
  cellOfNumber(count: number): string | undefined {
    return this._shownCells().find(cell => cell.count === count)?.id;
  }

  /** Keeps in mind which edits were put into files: nothing shows when these run. */
  noteInserted(edits: readonly IEdit[]): void {
    edits.filter(({ cell }) => cell < 0).forEach(edit => this._inFiles.add(editKey(edit)));
    this._repair();
  }

  /** The whole trace: what the output holds, or what the kernel still has. */
  async wholeOf(entry: IEntry): Promise<JsonObject> {
    const data = this.outputs.dataOf(entry);
    if (data !== undefined) {
      return data as JsonObject;
    }
    const answer = await this.connection.ask({ kind: 'fetch', trace: entry.number });
    if (answer.kind !== 'trace') {
      throw new Error(sentence(this._language, 'kernel.not-sent'));
    }
    return answer.data;
  }

  readonly dispose = (): void => {
    this.connection.dispose();
    this.outputs.dispose();
    this._cells.dispose();
    Signal.clearData(this);
  };

  private readonly _onConnection = (): void => {
    const { attempt, traces, state } = this.connection.state;
    if (attempt !== this._attempt) {
      this._attempt = attempt;
      this._live.clear();
    }
    const isKnown = state !== null;
    if (traces !== this._fromKernel || isKnown !== this._isKnown) {
      this._fromKernel = traces;
      this._isKnown = isKnown;
      this._onTraces();
    }
    this._emit();
  };

  private readonly _onTraces = (): void => {
    const turn = ++this._turn;
    void this._merged().then(entries => {
      if (turn === this._turn && !this.isDisposed) {
        this._entries = this._withRunSince(entries);
        this._repair();
        this._tracesChanged.emit();
        this._emit();
      }
    });
  };

  /** An error goes with the run of its cell that came to its end without one. */
  private readonly _onCells = (): void => {
    const entries = this._withRunSince(this._entries);
    if (entries.some((entry, i) => entry !== this._entries[i])) {
      this._entries = entries;
      this._tracesChanged.emit();
      this._emit();
    }
    this._repair();
  };

  private _withRunSince(entries: readonly IEntry[]): IEntry[] {
    return withRunSince(entries, new Map(codeCells(this.widget).map(({ id, executionCount }) => [id, executionCount])));
  }

  /** Texts and numbers of its cells are part of the fix that is shown. */
  private readonly _onFixedCells = (): void => {
    if (this.fix.shown !== null) {
      this._emit();
    }
  };

  private _shownCells(): IShownCell[] {
    const now = codeCells(this.widget).map(shownCell);
    this._numbered.note(now);
    return [...now, ...this._numbered.all];
  }

  private readonly _repair = (): void => {
    this._numbered.note(codeCells(this.widget).map(shownCell));
    const repairs = repairsOf({ entries: this._entries, cells: this._cells.all, inFiles: this._inFiles });
    const text = JSON.stringify([...repairs].map(([key, found]) => [key, [...found]]));
    if (text !== this._repairsText) {
      this._repairsText = text;
      this._repairs = repairs;
      this._fixed = fixedIn(repairs);
      this._repaired.emit();
      this._emit();
    }
  };

  /** Of a trace that both know, the output's entry with the kernel's number; oldest first. */
  private async _merged(): Promise<IEntry[]> {
    this._noteLive();
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
    const shown = this._shownCells();
    const entries = onePerTrace([...merged.values()])
      .map(entry => ({ ...entry, outline: withCellIds(entry.outline, shown) }))
      .sort((a, b) =>
        a.outline.recorded < b.outline.recorded ? -1 : a.outline.recorded > b.outline.recorded ? 1 : a.number - b.number
      );
    return this._isKnown ? this._marked(entries) : entries;
  }

  private _marked(entries: readonly IEntry[]): IEntry[] {
    const kept = this._fromKernel.map(({ trace }) => trace);
    return withEarlier(entries, ({ key }) => this._live.has(key), kept);
  }

  private _noteLive(): void {
    for (const { key } of this.outputs.entries.filter(each => !this._seen.has(each.key))) {
      this._seen.add(key);
      if (this._isKnown) {
        this._live.add(key);
      }
    }
  }

  private async _fromTraced(traced: ITraced): Promise<IEntry | null> {
    const { trace: number, label, cell, seconds, ops, outline: data } = traced;
    let read = this._read.get(traced);
    if (!read) {
      read = readOutline(data, this._language).then(
        ({ outline, counting }) => {
          const key = keyOf(outline.recorded, cell, ops);
          return { key, label, cell, seconds, ops, outline, counting, number, isEarlier: false };
        },
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
