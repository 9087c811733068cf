import { opCount, type ITrace } from '../model/trace';

/** Shows a trace in `el`; the result takes it out again. */
export function mount(el: HTMLElement, trace: ITrace): () => void {
  const root = document.createElement('section');
  root.className = 'dt-report';
  root.dataset['devtrace'] = 'report';
  root.dataset['opCount'] = String(opCount(trace));
  root.append(table(trace));
  el.append(root);
  root.dataset['ready'] = 'true';
  return () => {
    root.remove();
  };
}

function table(trace: ITrace): HTMLTableElement {
  const result = document.createElement('table');
  result.createCaption().textContent = `${trace.title} ops by device`;
  for (const [device, ops] of trace.counts) {
    const row = result.insertRow();
    row.dataset['device'] = device;
    row.insertCell().textContent = device;
    row.insertCell().textContent = String(ops);
  }
  return result;
}
