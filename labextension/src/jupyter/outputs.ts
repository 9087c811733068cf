/**
 * The traces in the outputs of a notebook's or a console's cells, read as they come and go.
 */
import type { CodeCell, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { ConsolePanel } from '@jupyterlab/console';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import { readOutline, type IOutline } from '../model/outline';
import type { IEntry } from '../model/entries';
import { MIME_TYPE, type ITrace } from '../model/trace';
import type { Language } from '../model/words/catalogue';

export type CodeWidget = NotebookPanel | ConsolePanel;

/** Outputs change with every line that is printed; this many ms later we look. */
const SETTLE = 60;

export function codeCells(widget: CodeWidget): ICodeCellModel[] {
  const models: ICellModel[] =
    widget instanceof NotebookPanel
      ? [...(widget.content.model?.cells ?? [])]
      : [...widget.console.cells].map(({ model }) => model);
  return models.filter((model): model is ICodeCellModel => model.type === 'code');
}

export function codeCellWidgets(widget: CodeWidget): CodeCell[] {
  const cells = widget instanceof NotebookPanel ? widget.content.widgets : [...widget.console.cells];
  return cells.filter((cell): cell is CodeCell => cell.model.type === 'code');
}

export class Outputs {
  private _entries: readonly IEntry[] = [];
  private _data = new Map<string, unknown>();
  private _turn = 0;
  private _timer = 0;
  private readonly _followed = new WeakSet<ICodeCellModel>();
  private readonly _outlines = new WeakMap<object, Promise<IOutline | null>>();
  private readonly _changed = new Signal<this, void>(this);

  constructor(
    private readonly _widget: CodeWidget,
    private readonly _language: Language
  ) {
    if (_widget instanceof NotebookPanel) {
      _widget.content.modelChanged.connect(this._listen);
    }
    this._listen();
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** In the order of the cells. */
  get entries(): readonly IEntry[] {
    return this._entries;
  }

  /** The whole trace, from the output. */
  dataOf(entry: IEntry): unknown {
    return this._data.get(entry.key);
  }

  dispose(): void {
    this._turn++;
    window.clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private readonly _listen = (): void => {
    const cells =
      this._widget instanceof NotebookPanel ? this._widget.content.model?.cells : this._widget.console.cells;
    cells?.changed.connect(this._soon);
    this._soon();
  };

  private readonly _soon = (): void => {
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      void this._read();
    }, SETTLE);
  };

  private async _read(): Promise<void> {
    const turn = ++this._turn;
    const found: Array<Promise<[IEntry, unknown] | null>> = [];
    for (const cell of codeCells(this._widget)) {
      if (!this._followed.has(cell)) {
        this._followed.add(cell);
        cell.outputs.changed.connect(this._soon);
      }
      found.push(...tracesIn(cell).map(data => this._entry(cell, data)));
    }
    const entries = (await Promise.all(found)).filter(each => each !== null);
    if (turn !== this._turn) {
      return;
    }
    this._data = new Map(entries.map(([{ key }, data]) => [key, data]));
    const next = entries.map(([entry]) => entry);
    if (next.length !== this._entries.length || next.some((entry, i) => entry.key !== this._entries[i].key)) {
      this._entries = next;
      this._changed.emit();
    }
  }

  private async _entry(cell: ICodeCellModel, data: object): Promise<[IEntry, unknown] | null> {
    const read = this._outlines.get(data) ?? readOutline(data, this._language).catch(() => null);
    this._outlines.set(data, read);
    const outline = await read;
    // The output itself says what is wrong with it; a comparison shows two traces again that their own cells have.
    if (outline?.outline.comparison !== null) {
      return null;
    }
    return [entryOf(outline, cell), data];
  }
}

function entryOf({ outline, ops, seconds, counting }: IOutline, cell: ICodeCellModel): IEntry {
  const run = `In[${countOf(outline, cell.id) ?? cell.executionCount ?? ' '}]`;
  const label = outline.title === run ? run : `${run} ${outline.title}`.trim();
  const key = keyOf(outline.recorded, cell.id, ops);
  return { key, label, cell: cell.id, seconds, ops, outline, counting, number: -1, isEarlier: false };
}

/** The number that the cell had when it was traced: its own comes later, with the end of its run. */
function countOf({ sites, strings }: ITrace, cell: string): number | null {
  for (let site = 0; site < sites.length; site++) {
    if (strings[sites.cell_id[site]] === cell && sites.cell[site] >= 0) {
      return sites.cell[site];
    }
  }
  return null;
}

/** One trace, whether it comes from an output or from the kernel. */
export function keyOf(recorded: string, cell: string, ops: number): string {
  return `${recorded} ${cell} ${ops}`;
}

function tracesIn(cell: ICodeCellModel): object[] {
  const found: object[] = [];
  for (let i = 0; i < cell.outputs.length; i++) {
    const output = cell.outputs.get(i);
    if (output.type === 'display_data' || output.type === 'execute_result') {
      const data: unknown = output.data[MIME_TYPE];
      if (typeof data === 'object' && data !== null) {
        found.push(data);
      }
    }
  }
  return found;
}
