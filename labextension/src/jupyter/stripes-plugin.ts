/**
 * The plugin that puts the stripes into every editor of a cell.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { StripeStore, stripesFor } from './stripes';

export const stripeStore = new StripeStore();

const stripes: JupyterFrontEndPlugin<void> = {
  id: 'devtrace:stripes',
  description: 'Marks the lines of traced cells by device, and the spans that findings are about.',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  activate: (_, registry: IEditorExtensionRegistry) => {
    registry.addExtension({
      name: 'devtrace-stripes',
      factory: ({ model }) => {
        const { id } = model.sharedModel as { id?: unknown };
        return typeof id === 'string'
          ? EditorExtensionRegistry.createImmutableExtension(stripesFor(id, stripeStore))
          : null;
      }
    });
  }
};

export default stripes;
