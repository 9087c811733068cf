/**
 * The stand-alone script of the html form: `devtrace.show(element, data)` where no extension renders the bundle.
 */
import { readTrace } from '../model/trace';
import { mount } from './report';

export function show(el: HTMLElement, data: unknown): () => void {
  const trace = readTrace(data);
  if (typeof trace === 'string') {
    el.textContent = trace;
    return () => {
      el.replaceChildren();
    };
  }
  return mount(el, trace);
}
