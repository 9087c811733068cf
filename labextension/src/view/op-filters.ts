/**
 * The filters of the ops table: words, a device, a module, a line.
 */
import { EVERYTHING, type IFilter } from '../layout/filter';
import { deviceName, modulePath, siteLabel, type ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { h, searchField } from './dom';
import type { Disposables } from './disposables';

/** Lists longer than this are no help; words find the rest. */
const MOST_CHOICES = 400;

interface IChoice {
  readonly label: string;
  readonly value: Partial<IFilter>;
}

export function opFilters(
  owner: Node,
  trace: ITrace,
  disposables: Disposables,
  changed: (filter: IFilter) => void
): HTMLElement[] {
  const { language } = trace;
  let filter = EVERYTHING;
  const apply = (part: Partial<IFilter>): void => {
    filter = { ...filter, ...part };
    changed(filter);
  };
  const [label, hint] = [sentence(language, 'ops.filter-words'), sentence(language, 'ops.filter')];
  return [
    searchField(owner, disposables, label, hint, text => apply({ text })),
    choice(owner, { language, by: 'device', none: { device: null }, choices: devices(trace) }, disposables, apply),
    choice(owner, { language, by: 'module', none: { module: null }, choices: modules(trace) }, disposables, apply),
    choice(owner, { language, by: 'line', none: { source: null }, choices: lines(trace) }, disposables, apply)
  ];
}

const WORDS = {
  device: { label: 'ops.filter-device', any: 'ops.any-device' },
  module: { label: 'ops.filter-module', any: 'ops.any-module' },
  line: { label: 'ops.filter-line', any: 'ops.any-line' }
} as const;

/** A list to choose one value of a filter from. */
interface IList {
  readonly language: Language;
  readonly by: keyof typeof WORDS;
  readonly none: Partial<IFilter>;
  readonly choices: readonly IChoice[];
}

function choice(
  owner: Node,
  { language, by, none, choices }: IList,
  disposables: Disposables,
  apply: (part: Partial<IFilter>) => void
): HTMLElement {
  const select = h(owner, 'select', {
    class: 'dt-input dt-choice',
    aria: { label: sentence(language, WORDS[by].label) }
  });
  [sentence(language, WORDS[by].any), ...choices.map(({ label }) => label)].forEach((label, i) => {
    select.append(h(owner, 'option', { text: label.slice(0, 80), attributes: { value: String(i) } }));
  });
  disposables.listen(select, 'change', () => {
    apply(select.selectedIndex > 0 ? choices[select.selectedIndex - 1].value : none);
  });
  return select;
}

function devices(trace: ITrace): IChoice[] {
  return Array.from({ length: Math.min(trace.devices.length, MOST_CHOICES) }, (_, device) => ({
    label: deviceName(trace, device),
    value: { device }
  }));
}

function modules(trace: ITrace): IChoice[] {
  return Array.from({ length: Math.min(trace.modules.length, MOST_CHOICES) }, (_, module) => ({
    label: modulePath(trace, module),
    value: { module }
  }));
}

/** One choice for each line that ran an op. */
function lines(trace: ITrace): IChoice[] {
  const found = new Map<string, IChoice>();
  for (let site = 0; site < trace.sites.length && found.size < MOST_CHOICES; site++) {
    const label = siteLabel(trace, site);
    const file = trace.sites.file[site];
    const line = trace.sites.line[site];
    if (!found.has(`${file} ${line}`)) {
      found.set(`${file} ${line}`, { label, value: { source: { file: trace.strings[file], line } } });
    }
  }
  return [...found.values()];
}
