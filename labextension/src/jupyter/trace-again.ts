/**
 * Traces the cell whose error was explained untraced: the button in its report.
 */
import { Notification } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { sentence } from '../model/words/catalogue';
import { languageAround } from '../view/language';
import type { SidebarActions } from './actions';
import type { Session } from './session';

export function traceAgain(actions: SidebarActions, session: Session | null, id: string): void {
  const widget = session?.widget;
  if (!(widget instanceof NotebookPanel)) {
    return;
  }
  const { content } = widget;
  const index = content.widgets.findIndex(({ model }) => model.id === id);
  if (index < 0) {
    Notification.warning(sentence(languageAround(widget.node), 'again.gone'), { autoClose: 5000 });
    return;
  }
  content.activeCellIndex = index;
  void actions.traceCell();
}
