/**
 * A trace in a tab of the main area.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import type { IEntry } from '../model/entries';
import type { ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { showTrace } from '../view/page';
import type { IHost } from '../view/selection';
import { traceIcon } from './icon';

class TraceTab extends Widget {
  private readonly _dispose: () => void;

  constructor(data: unknown, hostOf: (trace: ITrace) => IHost) {
    super();
    this.addClass('dt-tab-page');
    this._dispose = showTrace(this.node, data, hostOf).dispose;
  }

  override dispose(): void {
    this._dispose();
    super.dispose();
  }
}

/** The tab of a trace of the notebook with this name. */
export function traceTab(
  language: Language,
  { key, label }: IEntry,
  name: string,
  data: unknown,
  hostOf: (trace: ITrace) => IHost
): MainAreaWidget {
  const widget = new MainAreaWidget({ content: new TraceTab(data, hostOf) });
  widget.id = tabId(key);
  widget.title.label = label;
  widget.title.caption = sentence(language, 'page.caption', { label, name });
  widget.title.icon = traceIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  return widget;
}

export function tabId(trace: string): string {
  return `devtrace-trace-${trace}`;
}
