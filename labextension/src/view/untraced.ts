/**
 * Below the findings of a cell that nobody traced: the button that traces it, where the page can run it.
 */
import { sentence } from '../model/words/catalogue';
import { Disposables } from './disposables';
import { button, h } from './dom';
import { languageAround } from './language';

export function mountTraceAgain(root: HTMLElement, again: () => void): () => void {
  const disposables = new Disposables();
  const language = languageAround(root);
  const trace = button(root, sentence(language, 'again.trace'), {
    class: 'dt-small',
    title: sentence(language, 'again.trace-title'),
    data: { devtrace: 'trace-again' }
  });
  const bar = h(root, 'p', { class: 'dt-again' }, trace);
  disposables.listen(trace, 'click', again);
  root.append(bar);
  disposables.remove(bar);
  return disposables.dispose;
}
