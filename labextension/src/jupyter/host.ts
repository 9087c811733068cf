/**
 * What a report in a cell's output can do for its user. Renderer and panel are two plugins, of which JupyterLab lets the renderer require
 * nothing: it asks the page, and where the panel is switched off nobody answers.
 */
import type { ITrace } from '../model/trace';
import type { IHost } from '../view/selection';

const ASK = 'devtrace:ask-for-host';

interface IQuestion {
  readonly trace: ITrace;
  readonly element: Element;
  host: IHost;
}

/** Answers every report of this page from here on. */
export function offerHosts(hostOf: (trace: ITrace, element: Element) => IHost): void {
  document.addEventListener(ASK, event => {
    const question = (event as CustomEvent<IQuestion>).detail;
    question.host = hostOf(question.trace, question.element);
  });
}

export function askForHost(trace: ITrace, element: Element): IHost {
  const question: IQuestion = { trace, element, host: {} };
  document.dispatchEvent(new CustomEvent(ASK, { detail: question }));
  return question.host;
}
