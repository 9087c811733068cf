/**
 * The renderer of a traced cell's output and of `.devtrace` files, in JupyterLab and Notebook 7, with or without a kernel, trusted or not.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { MIME_TYPE } from '../model/trace';
import { showTrace } from '../view/page';
import { askForHost } from './host';
import { keepKeysFor } from './keys';

class TraceOutput extends Widget implements IRenderMime.IRenderer {
  private _data: unknown;
  private _dispose?: () => void;
  private readonly _freeKeys: () => void;

  constructor() {
    super();
    this.addClass('dt-output');
    this._freeKeys = keepKeysFor(this.node);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data = model.data[MIME_TYPE];
    // Lab renders a model again for each change of its metadata; the trace stays the same, and so does what the user looks at.
    if (data === this._data) {
      return Promise.resolve();
    }
    this._data = data;
    this._dispose?.();
    const shown = showTrace(this.node, data, trace => askForHost(trace, this.node));
    this._dispose = shown.dispose;
    return shown.done;
  }

  override dispose(): void {
    this._dispose?.();
    this._freeKeys();
    super.dispose();
  }
}

const extension: IRenderMime.IExtension = {
  id: 'devtrace:mime',
  description: 'Shows the traces of devtrace.',
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: () => new TraceOutput()
  },
  rank: 0,
  // Text, not JSON: a file that is damaged gets our sentence instead of Lab's dialog.
  dataType: 'string',
  fileTypes: [
    { name: 'devtrace', displayName: 'devtrace', mimeTypes: [MIME_TYPE], extensions: ['.devtrace'], fileFormat: 'text' }
  ],
  documentWidgetFactoryOptions: {
    name: 'devtrace',
    primaryFileType: 'devtrace',
    fileTypes: ['devtrace'],
    defaultFor: ['devtrace']
  }
};

export default extension;
