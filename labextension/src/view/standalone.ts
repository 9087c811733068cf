/**
 * The one script for pages that no extension of ours renders (report.to_html, VS Code, Colab):
 *
 *     devtraceMount(element, trace)      `trace`: the bundle's object, or its JSON text; returns what takes the report out again
 *     devtraceMount.upgrade(slot, trace)  the same in the place of what `slot` shows, once it stands
 */
import { showTrace } from './page';
import { addStyle, upgrade } from './upgrade';

function devtraceMount(el: HTMLElement, trace: unknown): () => void {
  addStyle(el);
  return showTrace(el, trace).dispose;
}

Object.assign(globalThis, { devtraceMount: Object.assign(devtraceMount, { upgrade }) });
