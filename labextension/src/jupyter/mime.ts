/**
 * The renderer of a traced cell's output, in JupyterLab and Notebook 7, with or without a kernel.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { MIME_TYPE } from '../model/trace';
import { show } from '../view/page';

class TraceOutput extends Widget implements IRenderMime.IRenderer {
  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._dispose?.();
    this._dispose = show(this.node, model.data[MIME_TYPE]);
    return Promise.resolve();
  }

  override dispose(): void {
    this._dispose?.();
    super.dispose();
  }

  private _dispose?: () => void;
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
  dataType: 'json',
  fileTypes: [{ name: 'devtrace', mimeTypes: [MIME_TYPE], extensions: ['.devtrace'] }],
  documentWidgetFactoryOptions: {
    name: 'devtrace',
    primaryFileType: 'devtrace',
    fileTypes: ['devtrace'],
    defaultFor: ['devtrace']
  }
};

export default extension;
