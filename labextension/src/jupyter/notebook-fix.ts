/**
 * "Fix the notebook" in one notebook: what it asks the kernel for, how its changes come into the cells, and what then runs again.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import {
  BEGINNING,
  cellLabels,
  difference,
  have,
  holds,
  isRunning,
  type Applied,
  type ICellText,
  type IFixShown,
  type ITried,
  type Rerun
} from '../model/fixing';
import type { IFixing } from '../model/messages';
import { asOneChange, type IUndoManager } from '../model/linked-undo';
import { sentence, type Language } from '../model/words/catalogue';
import { codeCells, hasFailed, type CodeWidget } from './cells';
import type { Connection } from './connection';

/** The editable text of a cell in JupyterLab's document model. */
interface ISharedText {
  readonly undoManager?: IUndoManager | null;
  updateSource(start: number, end: number, value: string): void;
}

export class NotebookFix {
  private _rerun: Rerun | null = null;
  /** What had to run when changes were put in or Run was pressed: the kernel says anew after each cell what is left. */
  private _pressed: Pick<IFixing, 'run' | 'needed'> | null = null;
  /** What was fixed: a proof is of these texts, and of no others. */
  private _asked: readonly ICellText[] = [];
  private _tried: ITried | null = null;
  /** What the kernel had said before it was asked: until it says more, a fix begins. Undefined where none was asked for. */
  private _before: IFixing | null | undefined;
  /** What holds is put in without another press. */
  private _inserts = false;
  private _runs = '';
  private _since = 0;
  private _shown: IFixShown | null = null;
  private _text = '';

  constructor(
    private readonly _widget: CodeWidget,
    private readonly _connection: Connection,
    private readonly _language: Language,
    private readonly _changed: () => void
  ) {}

  /** The same value until something of it has changed. */
  get shown(): IFixShown | null {
    return this._shown;
  }

  /** Takes in what the kernel has said and what the cells are now. */
  look(): void {
    const known = this._connection.state.fixing;
    this._before = known === this._before ? this._before : undefined;
    const fixing = this._before === undefined ? known : BEGINNING;
    if (fixing?.state === 'running') {
      this._rerun = null;
    }
    const next = fixing && this._next(fixing);
    const text = JSON.stringify(next);
    if (text !== this._text) {
      this._text = text;
      this._shown = next;
    }
  }

  private _next(fixing: IFixing): IFixShown {
    const runs = `${fixing.round} ${fixing.cell}`;
    if (runs !== this._runs) {
      [this._runs, this._since] = [runs, Date.now()];
    }
    const { _tried: tried, _since: since } = this;
    const applied = this._applied(fixing);
    const pressed = applied === 'running' || applied === 'clean' ? this._pressed : {};
    return { fixing: { ...fixing, ...pressed }, tried, since, labels: this._labels(), applied };
  }

  /** Asks for the fix of all cells, or of those as far as one; `tried`: of that finding's error alone. */
  begin(last?: string, tried: ITried | null = null, inserts = false): void {
    const isOne = tried !== null;
    [this._tried, this._inserts, this._runs] = [tried, inserts, ''];
    this._before = this._connection.state.fixing;
    const all = this._texts();
    const end = last === undefined ? -1 : all.findIndex(({ cell }) => cell === last);
    const isAll = end < 0 || all.slice(end + 1).every(({ source }) => source.trim() === '');
    this._asked = isAll ? all : all.slice(0, end + 1);
    const how = { as_far: !isAll, one: isOne };
    this._connection.ask({ kind: 'fix', cells: this._asked, ...how }).catch((error: unknown) => {
      [this._before, this._tried] = [undefined, null];
      this._changed();
      if (isOne) {
        // The panel, which shows why, may be closed.
        Notification.warning(error instanceof Error ? error.message : String(error), { autoClose: 6000 });
      }
    });
    this._changed();
  }

  cancel(): void {
    this._connection.ask({ kind: 'cancel_fix' }).catch(() => undefined);
  }

  /** Puts what holds into its cells at once, where that was asked for with the trial. */
  settle(): void {
    const { shown } = this;
    if (this._inserts && shown && !isRunning(shown)) {
      this._inserts = false;
      if (holds(shown)) {
        this.apply();
      }
    }
  }

  /** Puts all changes into their cells: one change, which one undo takes back. Where a cell of them has another text now, none. */
  apply(): void {
    const { fixing } = this._connection.state;
    if (fixing?.state === 'running') {
      this.cancel();
    }
    if (!fixing || !this._isAsAsked(fixing)) {
      Notification.warning(sentence(this._language, 'notice.fix-changed'), { autoClose: 6000 });
      return;
    }
    this._pressed = { run: fixing.run, needed: [] };
    this._put(fixing.changed);
  }

  /** Takes the changes out again, whatever has been undone or typed in other cells since. */
  undo(): void {
    const changed = this._connection.state.fixing?.changed ?? [];
    this._put(changed.map(({ cell, before, after }) => ({ cell, before: after, after: before })));
  }

  private _put(changed: IFixing['changed']): void {
    const cells = new Map(codeCells(this._widget).map(cell => [cell.id, cell.sharedModel as ISharedText]));
    const parts = changed.map(({ cell, before, after }) => ({
      text: cells.get(cell),
      ...difference(before, after)
    }));
    asOneChange(
      parts.map(({ text }) => text?.undoManager),
      () => parts.forEach(({ text, from, to, insert }) => text?.updateSource(from, to, insert))
    );
    this._changed();
  }

  /** Runs the cells that have to run again, one after the other, as far as one that fails. */
  async run(commands: JupyterFrontEnd['commands']): Promise<void> {
    const { fixing } = this._connection.state;
    if (!(this._widget instanceof NotebookPanel) || !fixing) {
      return;
    }
    const { run, needed } = fixing;
    this._pressed = { run, needed };
    this._set('running');
    const { content } = this._widget;
    for (const id of run) {
      const index = content.widgets.findIndex(({ model }) => model.id === id);
      if (index >= 0 && !this._widget.isDisposed) {
        content.activeCellIndex = index;
        content.deselectAll();
        await commands.execute('notebook:run-cell');
      }
      if (codeCells(this._widget).some(cell => cell.id === id && hasFailed(cell))) {
        this._set('failed');
        return;
      }
    }
    this._set('clean');
  }

  private _set(rerun: Rerun): void {
    this._rerun = rerun;
    this._changed();
  }

  private _applied({ changed, run }: IFixing): Applied {
    const ran = run.length === 0 ? 'clean' : this._rerun;
    return have('after', changed, this._texts()) ? (ran ?? 'applied') : 'no';
  }

  private _isAsAsked({ changed }: IFixing): boolean {
    const now = this._texts();
    const asked = this._asked.map(({ cell, source }) => ({ cell, before: source, after: source }));
    return have('before', [...asked, ...changed], now);
  }

  private _texts(): ICellText[] {
    return codeCells(this._widget).map(({ id, sharedModel }) => ({ cell: id, source: sharedModel.getSource() }));
  }

  private _labels(): Record<string, string> {
    const cells = codeCells(this._widget).map(({ id, executionCount }) => ({ id, count: executionCount ?? null }));
    return cellLabels(cells, this._language);
  }
}
