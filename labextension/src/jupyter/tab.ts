/**
 * A trace in a tab of the main area.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import type { ITrace } from '../model/trace';
import { showTrace } from '../view/page';
import type { IHost } from '../view/selection';
import { traceIcon } from './icon';

class TraceTab extends Widget {
  constructor(data: unknown, hostOf: (trace: ITrace) => IHost) {
    super();
    this.addClass('dt-tab-page');
    this._dispose = showTrace(this.node, data, hostOf).dispose;
  }

  override dispose(): void {
    this._dispose();
    super.dispose();
  }

  private readonly _dispose: () => void;
}

export function traceTab(label: string, data: unknown, hostOf: (trace: ITrace) => IHost): MainAreaWidget {
  const widget = new MainAreaWidget({ content: new TraceTab(data, hostOf) });
  widget.title.label = label;
  widget.title.caption = `Trace of ${label}`;
  widget.title.icon = traceIcon;
  widget.title.closable = true;
  return widget;
}
