/**
 * In the cells' editors: the stripe beside each traced line, with its ledger when pointed at, and the underline of what a finding is about.
 * They follow the text as it is edited, and a line that was changed shows that its stripe is stale.
 */
import {
  Compartment,
  MapMode,
  RangeSetBuilder,
  StateEffect,
  StateField,
  type ChangeDesc,
  type Extension,
  type Text
} from '@codemirror/state';
import {
  Decoration,
  EditorView,
  gutter,
  GutterMarker,
  hoverTooltip,
  showTooltip,
  ViewPlugin,
  type Tooltip
} from '@codemirror/view';
import { Signal, type ISignal } from '@lumino/signaling';
import { headerEnd } from '../layout/python';
import { locate } from '../model/source-span';
import type { ICellStripes, IMark, IStripe } from '../model/stripes';
import { markCard, stripeCard, stripeElement } from '../view/stripe';

/** The stripes and marks of each cell, for the editors that show them. */
export class StripeStore {
  private readonly _cells = new Map<string, ICellStripes>();
  private readonly _owned = new WeakMap<object, readonly string[]>();
  private readonly _changed = new Signal<this, ReadonlySet<string>>(this);

  /** Emitted with the cells that have other stripes now. */
  get changed(): ISignal<this, ReadonlySet<string>> {
    return this._changed;
  }

  get(cell: string): ICellStripes | null {
    return this._cells.get(cell) ?? null;
  }

  /** Replaces the cells of `owner`. */
  set(owner: object, cells: ReadonlyMap<string, ICellStripes>): void {
    const before = this._owned.get(owner) ?? [];
    this._owned.set(owner, [...cells.keys()]);
    before.forEach(cell => this._cells.delete(cell));
    cells.forEach((stripes, cell) => this._cells.set(cell, stripes));
    this._changed.emit(new Set([...before, ...cells.keys()]));
  }
}

interface IShownStripe {
  readonly pos: number;
  readonly stripe: IStripe;
  /** The line as it was traced. */
  readonly text: string;
}

interface IShownMark {
  readonly from: number;
  readonly to: number;
  readonly mark: IMark;
  readonly text: string;
}

interface IShown {
  readonly stripes: readonly IShownStripe[];
  readonly marks: readonly IShownMark[];
}

const NOTHING: IShown = { stripes: [], marks: [] };
const show = StateEffect.define<ICellStripes | null>();
const point = StateEffect.define<number | null>();

const shown = StateField.define<IShown>({
  create: () => NOTHING,
  update: (value, transaction) => {
    let next = transaction.docChanged ? mapped(value, transaction.changes, transaction.newDoc) : value;
    for (const effect of transaction.effects) {
      if (effect.is(show)) {
        next = shownIn(effect.value, transaction.newDoc, next);
      }
    }
    return next;
  }
});

/** Finds the traced lines in the text as it is now. A mark whose line was edited meanwhile stays where it was `before`. */
function shownIn(cell: ICellStripes | null, doc: Text, before: IShown): IShown {
  if (cell === null) {
    return NOTHING;
  }
  const lines = doc.toString().split('\n');
  const taken = new Set<number>();
  const stripes: IShownStripe[] = [];
  for (const stripe of cell.stripes) {
    const at = locate(lines, stripe.line, stripe.text) || (stripe.line <= lines.length ? stripe.line : 0);
    if (at > 0 && !taken.has(at)) {
      taken.add(at);
      stripes.push({ pos: doc.line(at).from, stripe, text: stripe.text ?? lines[at - 1] });
    }
  }
  const marks = cell.marks
    .map(mark => markedIn(mark, lines, doc) ?? before.marks.find(each => isSame(each.mark, mark)) ?? null)
    .filter(mark => mark !== null);
  return { stripes: sorted(stripes), marks: marks.sort((a, b) => a.from - b.from || a.to - b.to) };
}

function isSame(one: IMark, other: IMark): boolean {
  const [a, b] = [one.span, other.span];
  return one.label === other.label && one.message === other.message && a.line === b.line && a.column === b.column;
}

function markedIn(mark: IMark, lines: readonly string[], doc: Text): IShownMark | null {
  const { line, column, endLine, endColumn, text } = mark.span;
  const at = locate(lines, line, text);
  if (at === 0) {
    return null;
  }
  const first = doc.line(at);
  const indent = first.text.length - first.text.trimStart().length;
  const from = Math.min(first.from + (column < 0 ? indent : column), first.to);
  const last = doc.line(Math.min(at + Math.max(endLine - line, 0), doc.lines));
  const header = headerEnd(doc.sliceString(from, last.to));
  const to = header > 0 ? from + header : Math.min(endColumn < 0 ? last.to : last.from + endColumn, last.to);
  return to > from ? { from, to, mark, text: doc.sliceString(from, to) } : null;
}

function mapped({ stripes, marks }: IShown, changes: ChangeDesc, doc: Text): IShown {
  const moved = stripes.map(each => {
    const pos = changes.mapPos(each.pos, 1, MapMode.TrackDel);
    return pos === null ? found(each, changes, doc) : { ...each, pos: doc.lineAt(pos).from };
  });
  return {
    stripes: sorted(moved.filter(each => each !== null)),
    marks: marks
      .map(each => ({ ...each, from: changes.mapPos(each.from, 1), to: changes.mapPos(each.to, -1) }))
      .filter(({ from, to }) => to > from)
  };
}

/** A line whose beginning was deleted: it is gone, unless the whole text was replaced and it stands there again. */
function found(each: IShownStripe, changes: ChangeDesc, doc: Text): IShownStripe | null {
  const near = doc.lineAt(Math.min(changes.mapPos(each.pos, 1), doc.length)).number;
  const at = locate(doc.toString().split('\n'), near, each.text);
  return at === 0 ? null : { ...each, pos: doc.line(at).from };
}

/** One stripe a line; of two lines that were joined the first keeps its own. */
function sorted(stripes: readonly IShownStripe[]): IShownStripe[] {
  const byPos = [...stripes].sort((a, b) => a.pos - b.pos);
  return byPos.filter((each, i) => i === 0 || byPos[i - 1].pos !== each.pos);
}

function isStale({ pos, text }: IShownStripe, doc: Text): boolean {
  return doc.lineAt(pos).text.trimEnd() !== text.trimEnd();
}

class StripeMarker extends GutterMarker {
  constructor(
    readonly stripe: IStripe,
    readonly first: boolean,
    readonly stale: boolean
  ) {
    super();
  }

  override eq(other: StripeMarker): boolean {
    return this.stripe === other.stripe && this.first === other.first && this.stale === other.stale;
  }

  override toDOM(view: EditorView): Node {
    return stripeElement(view.dom, this.stripe, this.first, this.stale);
  }
}

const stripeGutter = gutter({
  class: 'dt-gutter',
  markers: view => {
    const builder = new RangeSetBuilder<GutterMarker>();
    const { doc } = view.state;
    let above = { line: -1, devices: '' };
    for (const each of view.state.field(shown).stripes) {
      const line = doc.lineAt(each.pos).number;
      const devices = each.stripe.devices.map(({ device }) => device).join(' ');
      const first = above.line !== line - 1 || above.devices !== devices;
      builder.add(each.pos, each.pos, new StripeMarker(each.stripe, first, isStale(each, doc)));
      above = { line, devices };
    }
    return builder.finish();
  },
  domEventHandlers: {
    mousemove: (view, block) => {
      pointAt(view, block.from);
      return false;
    },
    mouseleave: view => {
      pointAt(view, null);
      return false;
    }
  }
});

function pointAt(view: EditorView, pos: number | null): void {
  if (view.state.field(pointed)?.pos !== (pos ?? undefined)) {
    view.dispatch({ effects: point.of(pos) });
  }
}

/** The card of the line that is pointed at. */
const pointed = StateField.define<Tooltip | null>({
  create: () => null,
  update: (value, transaction) => {
    for (const effect of transaction.effects) {
      if (effect.is(point)) {
        return effect.value === null ? null : cardAt(transaction.state.field(shown), effect.value, transaction.newDoc);
      }
    }
    return transaction.docChanged || transaction.selection ? null : value;
  },
  provide: field => showTooltip.from(field)
});

function cardAt({ stripes }: IShown, pos: number, doc: Text): Tooltip | null {
  const line = doc.lineAt(Math.min(pos, doc.length));
  const each = stripes.find(stripe => stripe.pos === line.from);
  if (!each) {
    return null;
  }
  const stale = isStale(each, doc);
  return { pos: line.from, above: true, create: view => ({ dom: stripeCard(view.dom, each.stripe, stale) }) };
}

const underlines = EditorView.decorations.compute([shown], state => {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, mark, text } of state.field(shown).marks) {
    const stale = state.doc.sliceString(from, to) !== text;
    const attributes = { 'data-severity': mark.severity, 'data-stale': String(stale) };
    builder.add(from, to, Decoration.mark({ class: `dt-underline dt-${mark.severity}`, attributes }));
  }
  return builder.finish();
});

const findingTips = hoverTooltip((view, pos) => {
  const marks = view.state.field(shown).marks.filter(({ from, to }) => from <= pos && pos <= to);
  return marks.length === 0
    ? null
    : {
        pos: marks[0].from,
        end: marks[0].to,
        above: true,
        create: () => ({
          dom: markCard(
            view.dom,
            marks.map(({ mark }) => mark)
          )
        })
      };
});

/** The extension for the editor of one cell. The gutter takes its room only where there are stripes. */
export function stripesFor(cell: string, store: StripeStore): Extension {
  const room = new Compartment();
  const keeper = ViewPlugin.define(view => {
    const update = (): void => {
      const stripes = store.get(cell);
      const has = (stripes?.stripes.length ?? 0) > 0;
      view.dispatch({ effects: [show.of(stripes), room.reconfigure(has ? stripeGutter : [])] });
    };
    const follow = (_: unknown, cells: ReadonlySet<string>): void => {
      if (cells.has(cell)) {
        update();
      }
    };
    store.changed.connect(follow);
    // A plugin may not change the view while it is made.
    const timer = store.get(cell) === null ? 0 : window.setTimeout(update);
    return {
      destroy: () => {
        window.clearTimeout(timer);
        store.changed.disconnect(follow);
      }
    };
  });
  return [shown, pointed, room.of([]), underlines, findingTips, keeper];
}

/** Shows what the line with the cursor did, or takes that away; false where there is nothing to show. */
export function toggleLedger(view: EditorView): boolean {
  if (!view.state.field(shown, false)) {
    return false;
  }
  const line = view.state.doc.lineAt(view.state.selection.main.head);
  const open = view.state.field(pointed)?.pos === line.from;
  view.dispatch({ effects: point.of(open ? null : line.from) });
  return open || view.state.field(pointed) !== null;
}
