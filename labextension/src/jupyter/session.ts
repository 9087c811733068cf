/**
 * One notebook or console: its cells, its traces, its kernel and its fixes, as the one value that the sidebar shows.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import { isSlow } from '../model/connection';
import type { IEntry } from '../model/entries';
import type { IEdit } from '../model/findings';
import { editKey, repairedIn, repairsOf, type IRepair, type Repairs } from '../model/repairs';
import type { ISidebar } from '../model/sidebar';
import { sentence, type Language } from '../model/words/catalogue';
import { Cells, type CodeWidget } from './cells';
import { Connection } from './connection';
import { NotebookFix } from './notebook-fix';
import { Traces } from './traces';

export class Session {
  readonly context: ISessionContext;
  readonly connection: Connection;
  readonly traces: Traces;
  readonly fix: NotebookFix;
  private readonly _cells: Cells;
  private _repairs: Repairs = new Map();
  private _fixed: readonly string[] = [];
  private _repairsText = '';
  private readonly _inFiles = new Set<string>();
  private readonly _changed = new Signal<this, void>(this);

  constructor(
    readonly widget: CodeWidget,
    private readonly _language: Language
  ) {
    this.context = widget instanceof NotebookPanel ? widget.sessionContext : widget.console.sessionContext;
    this.connection = new Connection(this.context, _language);
    this._cells = new Cells(widget);
    const parts = { widget, cells: this._cells, connection: this.connection, language: _language };
    this.traces = new Traces(parts, this._look);
    this.fix = new NotebookFix(widget, this.connection, _language, this._emit);
    this._cells.changed.connect(this._look);
    this.connection.changed.connect(this._emit);
    this.context.propertyChanged.connect(this._emit);
    widget.disposed.connect(this.dispose);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get entries(): readonly IEntry[] {
    return this.traces.entries;
  }

  /** What became of fixes: the same value until something did. */
  get repairs(): Repairs {
    return this._repairs;
  }

  get isDisposed(): boolean {
    return this.widget.isDisposed;
  }

  /** The path of the notebook, under which its state is kept. */
  get path(): string {
    return this.context.path;
  }

  get sidebar(): ISidebar {
    const { version, state, live, inventory, pending, refused } = this.connection.state;
    const { label } = this.widget.title;
    const hasCells = this.widget instanceof NotebookPanel;
    const name = hasCells ? label : sentence(this._language, 'panel.console', { name: label });
    const { entries, repairs, _fixed: fixed } = this;
    const { link } = this.connection;
    const shown = { name, link, version, state, live, entries, repairs, fixed, inventory, pending, refused };
    return { ...shown, hasCells, isSlow: isSlow(this.connection.state), fix: hasCells ? this.fix.shown : null };
  }

  /** What became of the fix of a finding of the trace that was recorded then. */
  repairOf(recorded: string, finding: number): IRepair | null {
    const entry = this.entries.find(({ outline }) => outline.recorded === recorded);
    return (entry && this._repairs.get(entry.key)?.get(finding)) ?? null;
  }

  /** Keeps in mind which edits were put into files: nothing shows when these run. */
  noteInserted(edits: readonly IEdit[]): void {
    edits.filter(({ cell }) => cell < 0).forEach(edit => this._inFiles.add(editKey(edit)));
    this._look();
  }

  readonly dispose = (): void => {
    this.connection.dispose();
    this._cells.dispose();
    Signal.clearData(this);
  };

  /** Traces, texts and runs of cells are what fixes are held against. */
  private readonly _look = (): void => {
    const repairs = repairsOf({ entries: this.entries, cells: this._cells.all, inFiles: this._inFiles });
    const text = JSON.stringify([...repairs].map(([key, found]) => [key, [...found]]));
    if (text !== this._repairsText) {
      this._repairsText = text;
      this._repairs = repairs;
      this._fixed = repairedIn(repairs);
    }
    this._emit();
  };

  private readonly _emit = (): void => {
    if (!this.isDisposed) {
      this.fix.look();
      this.fix.settle();
      this._changed.emit();
    }
  };
}
