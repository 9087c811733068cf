/**
 * Tells ipywidgets where LiveView's model and view are; without ipywidgets there is nothing to tell. Loaded when the first is shown.
 */
import { IJupyterWidgetRegistry } from '@jupyter-widgets/base';
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { version } from '../../../package.json';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'devtrace:live',
  description: 'Shows the timeline of a traced cell while it runs (devtrace.LiveView).',
  autoStart: true,
  optional: [IJupyterWidgetRegistry],
  activate: (_: unknown, registry: IJupyterWidgetRegistry | null) => {
    registry?.registerWidget({
      name: 'devtrace',
      version,
      exports: async () => ({ ...(await import('./live')) })
    });
  }
};

export default plugin;
