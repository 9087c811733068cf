/**
 * The traces of a notebook or console: those in the outputs of its cells, and those that its kernel keeps.
 */
import type { ICodeCellModel } from '@jupyterlab/cells';
import { NumberedCells, withCellIds, type IShownCell } from '../model/cell-ids';
import { keptTraces } from '../model/connection';
import { onePerTrace, withEarlier, withRunSince, type IEntry } from '../model/entries';
import { isObject, type JsonObject } from '../model/findings';
import type { ITraced } from '../model/messages';
import { readOutline, type IOutline } from '../model/outline';
import { MIME_TYPE, type ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { codeCells, type Cells, type CodeWidget } from './cells';
import type { Connection } from './connection';

interface IParts {
  readonly widget: CodeWidget;
  readonly cells: Cells;
  readonly connection: Connection;
  readonly language: Language;
}

export class Traces {
  private _entries: readonly IEntry[] = [];
  private _known = '';
  /** What was seen of the connection last. */
  private _fromKernel: readonly unknown[] = [];
  /** Whole traces, from outputs, by the keys of their entries. */
  private _whole = new Map<string, JsonObject>();
  private _turn = 0;
  private _kernels = -1;
  /** Traces whose outputs came while there was this kernel: it recorded them, whether or not it has listed them yet. */
  private readonly _live = new Set<string>();
  private readonly _seen = new Set<string>();
  private readonly _outlines = new WeakMap<object, Promise<IOutline | null>>();
  private readonly _numbered = new NumberedCells();

  constructor(
    private readonly _parts: IParts,
    private readonly _changed: () => void
  ) {
    _parts.cells.changed.connect(() => void this._look());
    _parts.connection.changed.connect(this._onConnection);
  }

  /** Oldest first; the same value until one of them has changed. */
  get entries(): readonly IEntry[] {
    return this._entries;
  }

  /** The id of the cell that has this number, or had it before it ran again. */
  cellOfNumber(count: number): string | undefined {
    return this._shownCells().find(cell => cell.count === count)?.id;
  }

  /** The whole trace: what the output holds, or what the kernel still has. */
  async wholeOf({ key, number }: IEntry): Promise<JsonObject> {
    const data = this._whole.get(key);
    if (data !== undefined) {
      return data;
    }
    const answer = await this._parts.connection.ask({ kind: 'fetch', trace: number });
    if (answer.kind !== 'trace') {
      throw new Error(sentence(this._parts.language, 'kernel.not-sent'));
    }
    return answer.data;
  }

  private _shownCells(): IShownCell[] {
    const now = codeCells(this._parts.widget).map(shownCell);
    this._numbered.note(now);
    return [...now, ...this._numbered.all];
  }

  private readonly _onConnection = (): void => {
    const { kernels, traces, state, phase } = this._parts.connection.state;
    const known = [traces, state !== null, phase === 'absent'];
    if (kernels !== this._kernels) {
      this._kernels = kernels;
      this._live.clear();
    }
    if (known.some((each, i) => each !== this._fromKernel[i])) {
      this._fromKernel = known;
      void this._look();
    }
  };

  private readonly _look = async (): Promise<void> => {
    const turn = ++this._turn;
    const cells = codeCells(this._parts.widget);
    const shown = this._shownCells();
    const inOutputs = await Promise.all(
      cells.flatMap(cell => tracesIn(cell).map(data => this._outlineOf(data).then(read => [cell, data, read] as const)))
    );
    const { traces } = this._parts.connection.state;
    // Another notebook on this kernel shows what its own cells did.
    const mine = traces.filter(({ cell }) => cell === '' || cells.some(({ id }) => id === cell));
    const inKernel = await Promise.all(
      mine.map(traced => this._outlineOf(traced.outline).then(read => [traced, read] as const))
    );
    if (turn !== this._turn || this._parts.widget.isDisposed) {
      return;
    }
    const found = inOutputs.flatMap(([cell, data, read]) =>
      read === null ? [] : [[entryOf(read, cell), data] as const]
    );
    this._whole = new Map(found.map(([{ key }, data]) => [key, data]));
    const listed = inKernel.flatMap(([traced, read]) => (read === null ? [] : [entryOfTraced(read, traced)]));
    this._take(
      found.map(([entry]) => entry),
      listed,
      keptTraces(this._parts.connection.state),
      shown
    );
  };

  /** `kept`: the numbers of all traces that the kernel has; null where it has not said so yet. */
  private _take(
    found: readonly IEntry[],
    listed: readonly IEntry[],
    kept: readonly number[] | null,
    shown: readonly IShownCell[]
  ): void {
    for (const { key } of found.filter(each => !this._seen.has(each.key))) {
      this._seen.add(key);
      if (kept !== null && this._known !== '') {
        this._live.add(key);
      }
    }
    const known = JSON.stringify([[...found, ...listed].map(({ key, number }) => [key, number]), kept]);
    const isNew = known !== this._known;
    this._known = known;
    const entries = withRunSince(
      isNew ? this._merged(found, listed, kept, shown) : this._entries,
      new Map(codeCells(this._parts.widget).map(({ id, executionCount }) => [id, executionCount]))
    );
    if (isNew || entries.some((entry, i) => entry !== this._entries[i])) {
      this._entries = entries;
      this._changed();
    }
  }

  /** Of a trace that both know, the output's entry with the kernel's number; oldest first. */
  private _merged(
    found: readonly IEntry[],
    listed: readonly IEntry[],
    kept: readonly number[] | null,
    shown: readonly IShownCell[]
  ): IEntry[] {
    const merged = new Map(found.map(entry => [entry.key, entry]));
    for (const entry of listed) {
      merged.set(entry.key, { ...(merged.get(entry.key) ?? entry), number: entry.number });
    }
    const entries = onePerTrace([...merged.values()])
      .map(entry => ({ ...entry, outline: withCellIds(entry.outline, shown) }))
      .sort((a, b) => byTime(a.outline, b.outline) || a.number - b.number);
    return kept === null ? entries : withEarlier(entries, ({ key }) => this._live.has(key), kept);
  }

  /** Null for what cannot be read: the output itself says what is wrong with it. */
  private _outlineOf(data: JsonObject): Promise<IOutline | null> {
    const read = this._outlines.get(data) ?? readOutline(data, this._parts.language).catch(() => null);
    this._outlines.set(data, read);
    return read;
  }
}

function shownCell({ id, executionCount: count, sharedModel }: ICodeCellModel): IShownCell {
  return { id, count, source: sharedModel.getSource() };
}

function byTime({ recorded: a }: ITrace, { recorded: b }: ITrace): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function entryOf({ outline, ops, seconds }: IOutline, { id, executionCount }: ICodeCellModel): IEntry {
  const run = `In[${numberOf(outline, id) ?? executionCount ?? ' '}]`;
  const label = outline.title === run ? run : `${run} ${outline.title}`.trim();
  const key = keyOf(outline, id, ops);
  return { key, label, cell: id, seconds, ops, outline, number: -1, isEarlier: false };
}

function entryOfTraced({ outline }: IOutline, { trace: number, label, cell, seconds, ops }: ITraced): IEntry {
  const key = keyOf(outline, cell, ops);
  return { key, label, cell, seconds, ops, outline, number, isEarlier: false };
}

/** The number that the cell had when it was traced: its own comes later, with the end of its run. */
function numberOf({ sites, strings }: ITrace, cell: string): number | null {
  const site = sites.cell_id.findIndex((id, row) => strings[id] === cell && sites.cell[row] >= 0);
  return site < 0 ? null : sites.cell[site];
}

/** One trace, whether it comes from an output or from the kernel. */
function keyOf({ recorded }: ITrace, cell: string, ops: number): string {
  return `${recorded} ${cell} ${ops}`;
}

function tracesIn({ outputs }: ICodeCellModel): JsonObject[] {
  return Array.from({ length: outputs.length }, (_, i) => outputs.get(i)).flatMap(({ type, data }) => {
    const trace: unknown = type === 'display_data' || type === 'execute_result' ? data[MIME_TYPE] : null;
    return isObject(trace) ? [trace] : [];
  });
}
