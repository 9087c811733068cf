/**
 * From the data of an output or a file to a report in the page, or to the one sentence that says why there is none.
 */
import { FormatError } from '../model/errors';
import { readTrace } from '../model/read';
import type { ITrace } from '../model/trace';
import { untracedCell } from '../model/untraced';
import type { Language } from '../model/words/catalogue';
import { withCode } from './chips';
import { h } from './dom';
import { languageAround } from './language';
import { mountReport } from './report';
import { Disposables } from './disposables';
import { Selection, type IHost } from './selection';

interface IShown {
  /** Settles once the report, or the sentence, is in the page. */
  readonly done: Promise<void>;
  readonly dispose: () => void;
}

export function showTrace(el: HTMLElement, data: unknown, hostOf: (trace: ITrace) => IHost = () => ({})): IShown {
  const disposables = new Disposables();
  const show = async (): Promise<void> => {
    try {
      const trace = await readTrace(data, languageAround(el));
      if (!disposables.isDisposed) {
        disposables.add(mountReport(el, trace, new Selection(trace, hostOf(trace)), untracedCell(data)));
      }
    } catch (error) {
      if (!disposables.isDisposed) {
        disposables.add(showSentence(el, reasonOf(error, languageAround(el))));
      }
    }
  };
  return { done: show(), dispose: disposables.dispose };
}

function reasonOf(error: unknown, language: Language): string {
  return error instanceof FormatError ? error.sentenceIn(language) : String(error);
}

/** Show one sentence instead of a report. */
function showSentence(el: HTMLElement, sentence: string): () => void {
  const data = { devtrace: 'report', ready: 'true', opCount: '0' };
  const root = h(el, 'div', { class: 'dt-root dt-refused', role: 'alert', data }, ...withCode(el, sentence));
  el.append(root);
  return () => {
    root.remove();
  };
}
