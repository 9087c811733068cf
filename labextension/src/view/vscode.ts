/**
 * The renderer of a traced cell's output in VS Code's notebooks, as `vscode/package.json` names it: it needs no kernel and no trust.
 */
import { showTrace } from './page';
import { addStyle } from './upgrade';

/** What VS Code hands a renderer of one output (its API of notebook renderers). */
interface IOutputItem {
  readonly id: string;
  json(): unknown;
}

export interface IRenderer {
  readonly renderOutputItem: (item: IOutputItem, element: HTMLElement) => Promise<void>;
  readonly disposeOutputItem: (id?: string) => void;
}

export function activate(): IRenderer {
  const shown = new Map<string, () => void>();
  const end = (id: string): void => {
    shown.get(id)?.();
    shown.delete(id);
  };
  return {
    renderOutputItem(item, element) {
      end(item.id);
      element.replaceChildren();
      addStyle(element);
      const { done, dispose } = showTrace(element, dataOf(item));
      shown.set(item.id, dispose);
      return done;
    },
    disposeOutputItem(id) {
      (id === undefined ? [...shown.keys()] : [id]).forEach(end);
    }
  };
}

/** What is no JSON is shown as the sentence that refuses it. */
function dataOf(item: IOutputItem): unknown {
  try {
    return item.json();
  } catch {
    return '';
  }
}
