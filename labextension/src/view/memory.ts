/**
 * The memory of each device over the trace: what it is for stacked up, the limit, and what held it at its peak.
 */
import {
  AREA,
  ceilingOf,
  formatMemory,
  highestOf,
  holdersAt,
  layersOf,
  leftsOf,
  outlineOf,
  pointAt,
  totalOf,
  type IHolder,
  type ILayer
} from '../layout/memory';
import { MEMORY_KINDS, readMemory, type ICurve, type MemoryKind } from '../model/memory';
import { userSite, type ITrace } from '../model/trace';
import { sentence } from '../model/words/catalogue';
import { memoryLetter, memoryLook } from '../paint/memory';
import { namedChip, siteLink, withCode, type IViewContext } from './chips';
import { Disposables } from './disposables';
import { button, h } from './dom';
import type { Selection } from './selection';
import { svgElement } from './svg';
import type { Theme } from './theme';

const KINDS = {
  parameter: 'memory.parameter',
  buffer: 'memory.buffer',
  'optimizer-state': 'memory.optimizer-state',
  gradient: 'memory.gradient',
  named: 'memory.named',
  activation: 'memory.activation',
  temporary: 'memory.temporary'
} as const;

export function mountMemory(el: HTMLElement, trace: ITrace, selection: Selection, theme: Theme): () => void {
  const disposables = new Disposables();
  const root = h(el, 'div', { class: 'dt-memory', data: { devtrace: 'memory' } });
  el.append(root);
  disposables.remove(root);
  const dress = (): void => {
    for (const kind of MEMORY_KINDS) {
      const { fill, ink } = memoryLook(kind, theme.isDark);
      root.style.setProperty(`--dt-memory-${kind}`, fill);
      root.style.setProperty(`--dt-memory-${kind}-ink`, ink);
    }
  };
  dress();
  theme.changed.add(disposables, dress);
  const show = async (): Promise<void> => {
    try {
      const curves = await readMemory(trace.memory);
      if (!disposables.isDisposed) {
        const context = { owner: root, trace, selection, disposables };
        root.append(...curves.flatMap(curve => curveParts(context, curve)));
      }
    } catch (error) {
      root.append(h(root, 'p', { class: 'dt-none', text: String(error) }));
    }
    root.dataset['ready'] = 'true';
  };
  void show();
  return disposables.dispose;
}

/** The picture of one device between its peak in words and what held most of it then. */
function curveParts(context: IViewContext, curve: ICurve): HTMLElement[] {
  const { owner, trace, selection, disposables } = context;
  const layers = layersOf(curve);
  const total = totalOf(curve);
  const peak = highestOf(total);
  const op = curve.ops[peak];
  const title = sentence(trace.language, 'memory.go');
  const words = button(owner, disposables, peakWords(trace, curve, total[peak]), () => selection.pickOp(op), { title });
  const site = userSite(trace, trace.ops.site[op] ?? -1);
  const link = site < 0 ? [] : [siteLink(context, site)];
  return [
    h(owner, 'div', { class: 'dt-tools' }, namedChip(owner, trace, curve.device), words, ...link),
    plotOf(context, curve, layers, [peak, total[peak]]),
    h(owner, 'div', { class: 'dt-tools' }, ...layers.map(({ kind }) => kindChip(owner, trace, kind)).reverse()),
    h(owner, 'ul', { class: 'dt-memory-held' }, ...holdersAt(curve, peak).map(part => holderRow(owner, trace, part)))
  ];
}

/** `at most 44.5 MiB of 64.0 MiB` */
function peakWords({ language }: ITrace, { limit, exact }: ICurve, bytes: number): string {
  const size = formatMemory(bytes);
  if (limit > 0) {
    return sentence(language, 'memory.peak-of', { size, limit: formatMemory(limit) });
  }
  return sentence(language, exact ? 'memory.peak' : 'memory.at-least', { size });
}

/** The layers in their colours, with marks at the peak, the limit and the op that is picked; a press picks an op. */
function plotOf(
  context: IViewContext,
  curve: ICurve,
  layers: readonly ILayer[],
  [peak, highest]: readonly [point: number, bytes: number]
): HTMLElement {
  const { owner, trace, selection, disposables } = context;
  const lefts = leftsOf(curve, trace.ops.length);
  const ceiling = ceilingOf(curve, highest);
  const size = { viewBox: `0 0 ${AREA.width} ${AREA.height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const areas = svgElement(owner, 'svg', { ...size, width: '100%', height: String(AREA.height) });
  for (const layer of layers) {
    const fill = `var(--dt-memory-${layer.kind})`;
    areas.append(svgElement(owner, 'path', { d: outlineOf(layer, lefts, ceiling), fill, 'data-kind': layer.kind }));
  }
  const mark = (name: string, text: string, x: number, bytes: number): HTMLElement => {
    const style = { left: `${(100 * x) / AREA.width}%`, top: `${AREA.height * (1 - bytes / ceiling)}px` };
    return h(owner, 'i', { class: `dt-memory-${name}`, text, style, aria: { hidden: 'true' } });
  };
  const limit = sentence(trace.language, 'memory.limit', { size: formatMemory(curve.limit) });
  const cursor = mark('cursor', '', 0, ceiling);
  const follow = (): void => {
    const { op } = selection.picked;
    cursor.hidden = op < 0;
    cursor.style.setProperty('left', `${(100 * op) / trace.ops.length}%`);
  };
  follow();
  selection.changed.add(disposables, follow);
  const plot = h(
    owner,
    'div',
    { class: 'dt-memory-plot' },
    areas,
    mark('peak', '▼', lefts[peak], highest),
    ...(curve.limit > 0 && curve.limit <= ceiling ? [mark('limit', limit, 0, curve.limit)] : []),
    cursor
  );
  disposables.listen(plot, 'click', ({ clientX }) => {
    const { left, width } = plot.getBoundingClientRect();
    selection.pickOp(curve.ops[pointAt(lefts, (AREA.width * (clientX - left)) / width)]);
  });
  return plot;
}

/** The letter of a kind in its colour, with its name. */
function kindChip(owner: Node, { language }: ITrace, kind: MemoryKind): HTMLElement {
  const style = { '--dt-fill': `var(--dt-memory-${kind})`, '--dt-ink': `var(--dt-memory-${kind}-ink)` };
  const swatch = h(owner, 'i', { class: 'dt-swatch', text: memoryLetter(kind), style, aria: { hidden: 'true' } });
  return h(owner, 'span', {}, swatch, ` ${sentence(language, KINDS[kind])}`);
}

/** `A activations   model.blocks   500 B` */
function holderRow(owner: Node, trace: ITrace, { kind, name, size }: IHolder): HTMLElement {
  const what = name === '' ? sentence(trace.language, 'memory.others') : name;
  const named = h(owner, 'span', {}, ...withCode(owner, what));
  return h(owner, 'li', {}, kindChip(owner, trace, kind), named, h(owner, 'span', { text: formatMemory(size) }));
}
