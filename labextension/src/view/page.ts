/**
 * From the data of an output or a file to a report in the page, or to the one sentence that says why there is none.
 */
import { readTrace } from '../model/read';
import type { ITrace } from '../model/trace';
import { untracedCell } from '../model/untraced';
import { h } from './dom';
import { mountReport } from './report';
import { Disposables } from './disposables';
import { Selection, type IHost } from './selection';

export interface IShown {
  /** Settles once the report, or the sentence, is in the page. */
  readonly done: Promise<void>;
  readonly dispose: () => void;
}

export function showTrace(el: HTMLElement, data: unknown, hostOf: (trace: ITrace) => IHost = () => ({})): IShown {
  const disposables = new Disposables();
  const show = async (): Promise<void> => {
    try {
      const trace = await readTrace(data);
      if (!disposables.isDisposed) {
        disposables.add(mountReport(el, trace, new Selection(trace, hostOf(trace)), untracedCell(data)));
      }
    } catch (error) {
      if (!disposables.isDisposed) {
        disposables.add(showSentence(el, error instanceof Error ? error.message : String(error)));
      }
    }
  };
  return { done: show(), dispose: disposables.dispose };
}

/** Show one sentence instead of a report. */
export function showSentence(el: HTMLElement, sentence: string): () => void {
  const root = h(el, 'div', {
    class: 'dt-root dt-refused',
    role: 'alert',
    text: sentence,
    data: { devtrace: 'report', ready: 'true', opCount: '0' }
  });
  el.append(root);
  return () => {
    root.remove();
  };
}
