/**
 * The code cells of a notebook or console as they are now: text, number, outputs, and whether they were edited after they ran.
 */
import type { CodeCell, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { ConsolePanel } from '@jupyterlab/console';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import type { ICell } from '../model/repairs';

export type CodeWidget = NotebookPanel | ConsolePanel;

/** A text changes with every key, an output with every line that is printed; this many ms later we look. */
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

export function hasFailed({ outputs }: ICodeCellModel): boolean {
  return Array.from({ length: outputs.length }, (_, i) => outputs.get(i).type).includes('error');
}

export class Cells {
  private _timer = 0;
  private readonly _followed = new WeakSet<ICodeCellModel>();
  private readonly _changed = new Signal<this, void>(this);

  constructor(private readonly _widget: CodeWidget) {
    if (_widget instanceof NotebookPanel) {
      _widget.content.modelChanged.connect(this._listen);
    }
    this._listen();
  }

  /** Emitted when cells, texts, runs or outputs have changed, a moment later. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** By their ids. */
  get all(): ReadonlyMap<string, ICell> {
    return new Map(codeCells(this._widget).map(cell => [cell.id, stateOf(cell)]));
  }

  dispose(): void {
    window.clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private readonly _listen = (): void => {
    const cells =
      this._widget instanceof NotebookPanel ? this._widget.content.model?.cells : this._widget.console.cells;
    cells?.changed.connect(this._follow);
    this._follow();
  };

  private readonly _follow = (): void => {
    for (const cell of codeCells(this._widget).filter(each => !this._followed.has(each))) {
      this._followed.add(cell);
      cell.contentChanged.connect(this._soon);
      cell.stateChanged.connect(this._soon);
    }
    this._soon();
  };

  private readonly _soon = (): void => {
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      this._changed.emit();
    }, SETTLE);
  };
}

function stateOf(cell: ICodeCellModel): ICell {
  const { id, executionCount: count, isDirty, sharedModel } = cell;
  return { id, text: sharedModel.getSource(), count, isDirty, hasFailed: hasFailed(cell) };
}
