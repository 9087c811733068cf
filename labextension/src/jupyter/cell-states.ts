/**
 * The code cells of a notebook or console as they are now: text, number, and whether they were edited after they ran.
 */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Signal, type ISignal } from '@lumino/signaling';
import type { ICell } from '../model/repairs';
import { codeCells, type CodeWidget } from './outputs';

/** A text changes with every key; this many ms later we look. */
const SETTLE = 60;

export class CellStates {
  private _timer = 0;
  private readonly _followed = new WeakSet<ICodeCellModel>();
  private readonly _editedAt = new WeakMap<ICodeCellModel, number>();
  private readonly _changed = new Signal<this, void>(this);

  constructor(private readonly _widget: CodeWidget) {
    if (_widget instanceof NotebookPanel) {
      _widget.content.modelChanged.connect(this._listen);
    }
    this._listen();
  }

  /** Emitted when texts or runs have changed, a moment later. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** By their ids. */
  get all(): ReadonlyMap<string, ICell> {
    return new Map(codeCells(this._widget).map(cell => [cell.id, this._stateOf(cell)]));
  }

  dispose(): void {
    window.clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private _stateOf(cell: ICodeCellModel): ICell {
    const { id, executionCount: count, isDirty, outputs } = cell;
    const types = Array.from({ length: outputs.length }, (_, i) => outputs.get(i).type);
    return {
      id,
      text: cell.sharedModel.getSource(),
      count,
      isDirty,
      editedAt: this._editedAt.get(cell) ?? null,
      hasFailed: types.includes('error')
    };
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
      cell.stateChanged.connect((_, { name }) => {
        if (name === 'isDirty' && cell.isDirty) {
          this._editedAt.set(cell, highestCount(codeCells(this._widget)));
        }
        this._soon();
      });
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

function highestCount(cells: readonly ICodeCellModel[]): number {
  return cells.reduce((most, { executionCount }) => Math.max(most, executionCount ?? 0), 0);
}
