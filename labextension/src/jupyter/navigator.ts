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
import { planEdit, type Misfit } from '../model/edit';
import type { IEdit } from '../model/findings';
import { spanOfLine, locate, spanOfSite, type ISourceSpan } from '../model/source-span';
import { sourceLabel, type ITrace } from '../model/trace';
import type { IHost } from '../view/selection';
import { codeCellWidgets } from './outputs';
import { contentsPath } from './paths';
import type { Session } from './session';
import type { Sessions } from './sessions';

const MISFITS: Readonly<Record<Misfit, string>> = {
  changed: 'The lines that this edit is about have changed since they were traced. Run the cell again for a new one.',
  done: 'This edit has been made already.'
};

/** A text that is open, and its undo history where that is not the editor's own. */
interface ITarget {
  readonly view: EditorView;
  readonly undo?: { stopCapturing?: () => void } | null;
}

export class EditorNavigator {
  constructor(
    private readonly _shell: JupyterFrontEnd.IShell,
    private readonly _sessions: Sessions,
    private readonly _documents: IDocumentManager | null
  ) {}

  /** What a report of `trace` can ask of its surroundings; `around` finds the notebook that shows it. */
  hostOf(trace: ITrace, around: () => Session | null): IHost {
    return {
      reveal: site => {
        void this.reveal(spanOfSite(trace, site), around());
      },
      insert: edit => {
        void this.insert(trace, edit, around());
      }
    };
  }

  /** Selects the span of a site; the nearest line with its text where it has moved. */
  async reveal(site: ISourceSpan, near: Session | null): Promise<void> {
    const target = await this._targetOf(site, near);
    if (target) {
      const { view } = target;
      const lines = view.state.doc.toString().split('\n');
      const line = locate(lines, site.line, site.text) || Math.min(Math.max(site.line, 1), lines.length);
      const moved = line - site.line;
      const last = Math.min(Math.max(site.endLine + moved, line), lines.length);
      select(
        view,
        offset(view, line, site.column, false),
        offset(view, last, site.column < 0 ? -1 : site.endColumn, true)
      );
    }
  }

  async insert(trace: ITrace, edit: IEdit, near: Session | null): Promise<void> {
    const anchor = spanOfLine(trace, edit.file, edit.cell, edit.line);
    const target = await this._targetOf(anchor, near);
    if (!target) {
      return;
    }
    const { view, undo } = target;
    const plan = planEdit(view.state.doc.toString(), edit, anchor.text);
    if (typeof plan === 'string') {
      Notification.warning(MISFITS[plan], { autoClose: 6000 });
      return;
    }
    // What follows is undone by itself: else what was typed in the last half second would go with it.
    undo?.stopCapturing?.();
    view.dispatch({
      changes: { from: plan.from, to: plan.to, insert: plan.insert },
      selection: { anchor: plan.selectFrom, head: plan.selectTo },
      scrollIntoView: true,
      userEvent: 'input.devtrace'
    });
    undo?.stopCapturing?.();
    view.focus();
  }

  private async _targetOf(site: ISourceSpan, near: Session | null): Promise<ITarget | null> {
    if (site.cell >= 0 || site.cellId !== '') {
      const found = cellOf(site, near, this._sessions.all);
      if (found) {
        return this._showCell(...found);
      }
      Notification.warning(`${sourceLabel(site.cell, site.file)} is no longer in a notebook that is open.`, {
        autoClose: 5000
      });
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
      const line = site.text === null ? '' : `: ${site.text.trim().slice(0, 200)}`;
      Notification.info(`${site.file}, line ${site.line}${line}. The server does not show this file.`, {
        autoClose: 10000
      });
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

/** The cell of this id, else the one of this number in the notebook at hand. */
function cellOf(site: ISourceSpan, near: Session | null, all: readonly Session[]): [Session, CodeCell] | null {
  for (const session of near ? [near, ...all] : all) {
    const cell = codeCellWidgets(session.widget).find(({ model }) => site.cellId !== '' && model.id === site.cellId);
    if (cell) {
      return [session, cell];
    }
  }
  const numbered = near && codeCellWidgets(near.widget).find(({ model }) => model.executionCount === site.cell);
  return near && numbered ? [near, numbered] : null;
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
