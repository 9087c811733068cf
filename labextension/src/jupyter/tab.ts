/**
 * A trace in a tab of the main area. After a reload the tab is there before its trace is: it says so until the notebook has it again.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import type { ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { h } from '../view/dom';
import { showSentence, showTrace } from '../view/page';
import type { IHost } from '../view/selection';
import { traceIcon } from './icon';

/** What a tab shows: the key of the trace, its label and the name of its notebook. */
export interface ITabArgs {
  readonly trace: string;
  readonly label: string;
  readonly name: string;
}

class TraceTab extends Widget {
  private _dispose: () => void;

  constructor(language: Language, { label, name }: ITabArgs, data: Promise<unknown>, hostOf: (trace: ITrace) => IHost) {
    super();
    this.addClass('dt-tab-page');
    const text = sentence(language, 'page.waits', { label, name });
    const waiting = h(this.node, 'p', { class: 'dt-root dt-tab-waits', text });
    this.node.append(waiting);
    this._dispose = () => {
      waiting.remove();
    };
    const show = (shown: () => () => void): void => {
      if (!this.isDisposed) {
        this._dispose();
        this._dispose = shown();
      }
    };
    data.then(
      found => {
        show(() => showTrace(this.node, found, hostOf).dispose);
      },
      (error: unknown) => {
        const reason = String(error);
        show(() => showSentence(this.node, sentence(language, 'notice.gone', { label, reason })));
      }
    );
  }

  override dispose(): void {
    this._dispose();
    super.dispose();
  }
}

export function traceTab(
  language: Language,
  args: ITabArgs,
  data: Promise<unknown>,
  hostOf: (trace: ITrace) => IHost
): MainAreaWidget {
  const widget = new MainAreaWidget({ content: new TraceTab(language, args, data, hostOf) });
  widget.id = tabId(args.trace);
  widget.title.label = args.label;
  widget.title.caption = sentence(language, 'page.caption', { label: args.label, name: args.name });
  widget.title.icon = traceIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  return widget;
}

export function tabId(trace: string): string {
  return `devtrace-trace-${trace}`;
}
