/**
 * Below the findings of a cell that nobody traced: the button that traces it, where the page can run it.
 */
import { Disposables } from './disposables';
import { button, h } from './dom';

export function mountTraceAgain(root: HTMLElement, again: () => void): () => void {
  const disposables = new Disposables();
  const trace = button(root, 'Trace this cell again', {
    class: 'dt-small',
    title: 'Run this cell once more, and record what it does',
    data: { devtrace: 'trace-again' }
  });
  const bar = h(root, 'p', { class: 'dt-again' }, trace);
  disposables.listen(trace, 'click', again);
  root.append(bar);
  disposables.add(() => {
    bar.remove();
  });
  return disposables.dispose;
}
