/**
 * The plugin that puts the stripes into every editor of a cell.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { Token } from '@lumino/coreutils';
import { StripeStore, stripesFor } from './stripes';

/** The panel puts its stripes in here. */
export const IStripeStore = new Token<StripeStore>('devtrace:IStripeStore');

const stripes: JupyterFrontEndPlugin<StripeStore> = {
  id: 'devtrace:stripes',
  description: 'Marks the lines of traced cells by device, and the spans that findings are about.',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  provides: IStripeStore,
  activate: (_, registry: IEditorExtensionRegistry) => {
    const store = new StripeStore();
    registry.addExtension({
      name: 'devtrace-stripes',
      factory: ({ model }) => {
        const { id } = model.sharedModel as { id?: unknown };
        return typeof id === 'string' ? EditorExtensionRegistry.createImmutableExtension(stripesFor(id, store)) : null;
      }
    });
    return store;
  }
};

export default stripes;
