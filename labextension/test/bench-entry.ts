/**
 * The functions that `make bench` calls in the browser: the views' own code, by its parts. Bundled by tests/bench/bench_browser.py.
 */
import { buildBoxes } from '../src/layout/boxes';
import { layOutBoxes } from '../src/layout/flow';
import { moduleTree } from '../src/layout/modules';
import { readTrace } from '../src/model/read';
import type { ITrace } from '../src/model/trace';
import { Disposables } from '../src/view/disposables';
import { boxText } from '../src/view/module-box';
import { mountOps } from '../src/view/ops';
import { mountReport } from '../src/view/report';
import { Selection } from '../src/view/selection';
import { Theme } from '../src/view/theme';
import { mountTimeline } from '../src/view/timeline';

const STEPS = 60;

function frame(): Promise<number> {
  return new Promise(resolve => requestAnimationFrame(resolve));
}

async function painted(root: ParentNode, view: string): Promise<void> {
  while (!root.querySelector(`[data-devtrace="${view}"][data-ready="true"]`)) {
    await frame();
  }
}

/** From a file's text (or a bundle's object) to the report with its timeline painted, ms. */
async function shown(el: HTMLElement, data: unknown): Promise<number> {
  const begin = performance.now();
  const trace = await readTrace(data);
  const dispose = mountReport(el, trace, new Selection(trace));
  await painted(el, 'timeline');
  const time = performance.now() - begin;
  dispose();
  return time;
}

/** From a decoded trace to its painted timeline, ms. */
async function firstPaint(el: HTMLElement, trace: ITrace): Promise<number> {
  el.classList.add('dt-root');
  const disposables = new Disposables();
  const begin = performance.now();
  mountIn(el, trace, disposables);
  await painted(el, 'timeline');
  const time = performance.now() - begin;
  disposables.dispose();
  return time;
}

function mountIn(el: HTMLElement, trace: ITrace, disposables: Disposables): void {
  const theme = new Theme(el, trace, disposables);
  disposables.add(mountTimeline(el, trace, new Selection(trace), theme));
}

/** Each step of a walk of zooms and pans, from the wheel's turn to the frame that shows it, ms. */
async function walk(el: HTMLElement, trace: ITrace): Promise<number[]> {
  const disposables = new Disposables();
  mountIn(el, trace, disposables);
  await painted(el, 'timeline');
  const plot = el.querySelector<HTMLElement>('.dt-plot');
  const times: number[] = [];
  for (let step = 0; plot && step < STEPS; step++) {
    const turn = step % 3 === 2 ? { deltaX: 60, deltaY: 0 } : { deltaY: step < STEPS / 2 ? -60 : 60, ctrlKey: true };
    const begin = performance.now();
    plot.dispatchEvent(new WheelEvent('wheel', { ...turn, clientX: 500, cancelable: true }));
    await frame();
    times.push(performance.now() - begin);
  }
  disposables.dispose();
  return times;
}

/** Each jump of a table to another place, from the scroll to the frame that shows it, ms. */
async function scroll(el: HTMLElement, trace: ITrace): Promise<number[]> {
  const dispose = mountOps(el, trace, new Selection(trace), 'bench');
  const body = el.querySelector<HTMLElement>('.dt-op-grid');
  const times: number[] = [];
  for (let step = 0; body && step < STEPS; step++) {
    await frame();
    const begin = performance.now();
    body.scrollTop = (body.scrollHeight * ((step * 37) % STEPS)) / STEPS;
    await frame();
    times.push(performance.now() - begin);
  }
  dispose();
  return times;
}

/** Modules to placed boxes, ms, and how many modules there are. */
function modules(trace: ITrace, open: boolean): number {
  const begin = performance.now();
  const roots = moduleTree(trace);
  const opened = new Map(Array.from({ length: open ? trace.modules.length : 0 }, (_, id) => [id, true]));
  const unfolded = new Set(opened.keys());
  layOutBoxes(
    buildBoxes(trace, roots, { opened, unfolded }),
    1200,
    box => boxText(trace, box),
    () => 'none'
  );
  return performance.now() - begin;
}

async function decode(data: unknown): Promise<number> {
  const begin = performance.now();
  await readTrace(data);
  return performance.now() - begin;
}

Object.assign(globalThis, { bench: { readTrace, shown, firstPaint, walk, scroll, modules, decode } });
