/**
 * The plugins of the prebuilt extension; the renderer is in mime.ts.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import live from './live-plugin';
import panel from './panel';
import stripes from './stripes-plugin';

const plugins: Array<JupyterFrontEndPlugin<unknown>> = [live, panel, stripes];

export default plugins;
