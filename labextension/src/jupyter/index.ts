/**
 * The plugins of the prebuilt extension; the renderer is in mime.ts.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

const plugins: Array<JupyterFrontEndPlugin<unknown>> = [];

export default plugins;
