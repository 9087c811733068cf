/**
 * The one script for pages that no extension of ours renders (report.to_html, VS Code, Colab):
 *
 *     devtraceMount(element, trace)      `trace`: the bundle's object, or its JSON text; returns what takes the report out again
 */
import css from '../../style/base.css';
import { showTrace } from './page';

function devtraceMount(el: HTMLElement, trace: unknown): () => void {
  const owner = el.ownerDocument;
  if (!owner.getElementById('devtrace-style')) {
    const style = owner.createElement('style');
    style.id = 'devtrace-style';
    style.textContent = css;
    owner.head.append(style);
  }
  return showTrace(el, trace).dispose;
}

Object.assign(globalThis, { devtraceMount });
