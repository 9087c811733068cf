/**
 * Takes the user to a site in a cell or a file, and puts an edit there: one change that one undo takes back, selected, never run.
 */
import type { EditorView } from '@codemirror/view';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { CodeCell } from '@jupyterlab/cells';
import { PageConfig } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { IDocumentWidget } from '@jupyterlab/docregistry';
import { NotebookPanel } from '@jupyterlab/notebook';
import { groupedByText, planFix, together, type IChange, type Misfit } from '../model/edit';
import { asOneChange, type IUndoManager } from '../model/linked-undo';
import type { IEdit } from '../model/findings';
import { spanOfLine, locate, type ISourceSpan } from '../model/source-span';
import { sourceLabel, type ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { codeCellWidgets } from './cells';
import { contentsPath } from './paths';
import type { Session } from './session';
import type { Sessions } from './sessions';

const MISFITS = { changed: 'notice.changed', done: 'notice.done' } as const;

/** A text that is open, and its undo history where that is not the editor's own. */
interface ITarget {
  readonly view: EditorView;
  readonly undo?: IUndoManager | null;
}

/** What a fix changes in one text. */
interface IPart {
  readonly target: ITarget;
  readonly plan: readonly IChange[];
}

export class EditorNavigator {
  constructor(
    private readonly _shell: JupyterFrontEnd.IShell,
    private readonly _sessions: Sessions,
    private readonly _documents: IDocumentManager | null,
    private readonly _language: Language
  ) {}

  /** Selects the span of a site; the nearest line with its text where it has moved. */
  async reveal(site: ISourceSpan, near: Session | null): Promise<void> {
    const target = await this._targetOf(site, near);
    if (target) {
      const { view } = target;
      const lines = view.state.doc.toString().split('\n');
      const line = locate(lines, site.line, site.text) || Math.min(Math.max(site.line, 1), lines.length);
      const moved = line - site.line;
      const last = Math.min(Math.max(site.endLine + moved, line), lines.length);
      const to = offset(view, last, site.column < 0 ? -1 : site.endColumn, true);
      select(view, offset(view, line, site.column, false), to);
    }
  }

  /** Puts in all edits of a fix, or none: one change, which one undo takes back. */
  async insert(trace: ITrace, edits: readonly IEdit[], near: Session | null): Promise<void> {
    const parts: Array<IPart | Misfit> = [];
    for (const group of groupedByText(edits)) {
      const anchored = group.map(edit => ({ edit, anchor: lineOf(trace, edit).text }));
      const target = await this._targetOf(lineOf(trace, group[0]), near);
      if (!target) {
        return;
      }
      const plan = planFix(target.view.state.doc.toString(), anchored);
      parts.push(typeof plan === 'string' ? plan : { target, plan });
    }
    const fix = together(parts);
    if (typeof fix === 'string') {
      Notification.warning(sentence(this._language, MISFITS[fix]), { autoClose: 6000 });
    } else {
      make(fix);
      near?.noteInserted(edits);
    }
  }

  private async _targetOf(site: ISourceSpan, near: Session | null): Promise<ITarget | null> {
    if (site.cell >= 0 || site.cellId !== '') {
      const found = cellOf(site, near, this._sessions.all);
      if (found) {
        return this._showCell(...found);
      }
      const source = sourceLabel(site.cell, site.file);
      Notification.warning(sentence(this._language, 'notice.closed', { source }), { autoClose: 5000 });
      return null;
    }
    return this._showFile(site, near);
  }

  private async _showCell(session: Session, cell: CodeCell): Promise<ITarget | null> {
    const { widget } = session;
    this._shell.activateById(widget.id);
    if (widget instanceof NotebookPanel) {
      const { content } = widget;
      content.activeCellIndex = content.widgets.indexOf(cell);
      await content.scrollToCell(cell);
      await cell.ready;
      cell.inputHidden = false;
      content.mode = 'edit';
    } else {
      cell.node.scrollIntoView({ block: 'nearest' });
    }
    const view = viewIn(cell);
    const { undoManager } = cell.model.sharedModel as { undoManager?: ITarget['undo'] };
    return view && { view, undo: undoManager ?? null };
  }

  private async _showFile(site: ISourceSpan, near: Session | null): Promise<ITarget | null> {
    const folder = near?.connection.state.folder ?? '';
    const path = contentsPath(site.file, near?.path ?? '', folder, PageConfig.getOption('serverRoot'));
    const opened = path === null ? null : await this._open(path);
    if (!opened) {
      const where = { file: site.file, line: String(site.line) };
      const text =
        site.text === null
          ? sentence(this._language, 'notice.file', where)
          : sentence(this._language, 'notice.file-line', { ...where, text: site.text.trim().slice(0, 200) });
      Notification.info(text, { autoClose: 10000 });
      return null;
    }
    await opened.revealed;
    await opened.context.ready;
    this._shell.activateById(opened.id);
    const view = viewIn(opened.content);
    return view && { view };
  }

  private async _open(path: string): Promise<IDocumentWidget | null> {
    try {
      await this._documents?.services.contents.get(path, { content: false });
    } catch {
      return null;
    }
    return this._documents?.openOrReveal(path) ?? null;
  }
}

/** The cell of this id, else the one that has this number in the notebook at hand, or had it before it ran again. */
function cellOf(site: ISourceSpan, near: Session | null, all: readonly Session[]): [Session, CodeCell] | null {
  for (const session of near ? [near, ...all] : all) {
    const cell = codeCellWidgets(session.widget).find(({ model }) => site.cellId !== '' && model.id === site.cellId);
    if (cell) {
      return [session, cell];
    }
  }
  const id = near?.traces.cellOfNumber(site.cell);
  const numbered = near && codeCellWidgets(near.widget).find(({ model }) => model.id === id);
  return near && numbered ? [near, numbered] : null;
}

function lineOf(trace: ITrace, { file, cell, line }: IEdit): ISourceSpan {
  return spanOfLine(trace, file, cell, line);
}

/** Makes the changes of a fix in each of its texts, so that one undo takes all of them back. */
function make(parts: readonly IPart[]): void {
  const histories = parts.map(({ target }) => target.undo);
  asOneChange(histories, () => {
    for (const { target, plan } of [...parts].reverse()) {
      change(target.view, plan);
    }
  });
  parts[0].target.view.focus();
}

function change(view: EditorView, plan: readonly IChange[]): void {
  const shown = plan.find(({ insert }) => insert !== '') ?? plan[0];
  const above = plan.filter(({ from }) => from < shown.from);
  const moved = above.reduce((sum, { from, to, insert }) => sum + insert.length - (to - from), 0);
  view.dispatch({
    changes: plan.map(({ from, to, insert }) => ({ from, to, insert })),
    selection: { anchor: shown.selectFrom + moved, head: shown.selectTo + moved },
    scrollIntoView: true,
    userEvent: 'input.devtrace'
  });
}

/** The CodeMirror view of a cell or of a file's editor. */
export function viewIn(widget: object): EditorView | null {
  const { editor } = widget as { editor?: { editor?: unknown } | null };
  const view = editor?.editor as EditorView | undefined;
  return view && typeof view.dispatch === 'function' ? view : null;
}

function offset(view: EditorView, line: number, column: number, end: boolean): number {
  const { from, to, text } = view.state.doc.line(line);
  const indent = text.length - text.trimStart().length;
  return column < 0 ? (end ? to : from + indent) : Math.min(from + column, to);
}

function select(view: EditorView, from: number, to: number): void {
  view.dispatch({ selection: { anchor: from, head: Math.max(from, to) }, scrollIntoView: true });
  view.focus();
}
