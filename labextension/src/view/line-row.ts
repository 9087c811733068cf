/**
 * One line of source with its ledger.
 */
import type { IToken } from '../layout/python';
import { segmentsOf } from '../layout/segments';
import type { ILine, IMark } from '../layout/source';
import { formatBytes, formatCount, formatTime } from '../layout/units';
import { countOps, type ILedgerCounts } from '../model/ledger';
import { deviceName, type ITrace } from '../model/trace';
import { joined, sentence, type Language } from '../model/words/catalogue';
import { severityLook } from '../paint/palette';
import { h } from './dom';

const COUNTS = [
  ['lines.ops', 'lines.ops-title'],
  ['lines.time', 'lines.time-title'],
  ['lines.copies', 'lines.copies-title'],
  ['lines.waits', 'lines.waits-title'],
  ['lines.moved', 'lines.moved-title']
] as const;

export function columnHeads(owner: Node, language: Language): HTMLElement[] {
  const head = (text: string, title = ''): HTMLElement => h(owner, 'span', { role: 'columnheader', text, title });
  return [
    head(sentence(language, 'lines.line')),
    ...COUNTS.map(([name, title]) => head(sentence(language, name), sentence(language, title))),
    head(sentence(language, 'lines.source'))
  ];
}

/** No more of a line is shown. */
const LONGEST = 500;
/** A line that is indented further has no room left for what does not fit. */
const DEEPEST = 24;

/** The rows of all lines have these in common. */
interface ILinesContext {
  readonly owner: Node;
  readonly trace: ITrace;
  /** The ops of the busiest line. */
  readonly most: number;
}

export function lineRow(context: ILinesContext, line: ILine, tokens: readonly IToken[]): HTMLElement {
  const { owner } = context;
  const { cost } = line;
  const cell = (name: string, text: string): HTMLElement =>
    h(owner, 'span', { class: `dt-${name}`, role: 'gridcell', text });
  const worst = line.marks.find(({ kind }) => kind !== 'born' && kind !== 'moved') ?? line.marks.at(0);
  return h(
    owner,
    'div',
    {
      class: `dt-line ${worst ? `dt-marked dt-marked-${worst.kind}` : ''}`.trim(),
      role: 'row',
      data: { line: String(line.number) },
      aria: { selected: 'false' },
      attributes: { tabindex: '-1' }
    },
    cell('number', String(line.number)),
    heat(context, cost),
    cell('time', line.time > 0 ? formatTime(line.time) : ''),
    cell('copies', cost ? copiesText(cost) : ''),
    cell('waits', cost && cost.syncs > 0 ? formatCount(cost.syncs) : ''),
    cell('bytes', cost && cost.bytes > 0 ? formatBytes(cost.bytes) : ''),
    h(
      owner,
      'code',
      { class: 'dt-text', role: 'gridcell', style: { '--dt-indent': `${indentOf(line.text)}ch` } },
      ...pieces(context, line, tokens),
      ...tags(context, line)
    )
  );
}

/** A line that does not fit goes on below, indented by so many letters as its beginning. */
function indentOf(text: string): number {
  const [blank] = /^[ \t]*/.exec(text) ?? [''];
  return Math.min(blank.replace(/\t/g, '    ').length, DEEPEST);
}

/** The number of ops beside a bar as long as their share of the busiest line's, in the devices' colours. */
function heat({ owner, trace, most }: ILinesContext, cost: ILedgerCounts | null): HTMLElement {
  const result = h(owner, 'span', { class: 'dt-heat', role: 'gridcell' });
  const total = countOps(cost);
  if (cost && total > 0) {
    const bar = h(owner, 'span', {
      class: 'dt-bar',
      style: { width: `${Math.max(4, Math.sqrt(total / most) * 52)}px` }
    });
    const counts: string[] = [];
    cost.ops.forEach((count, device) => {
      if (count > 0) {
        counts.push(sentence(trace.language, 'lines.ops-on', { count, device: deviceName(trace, device) }));
        bar.append(
          h(owner, 'i', {
            style: {
              'flex-grow': String(count),
              background: `var(--dt-hatch-${device}, none), var(--dt-device-${device})`
            }
          })
        );
      }
    });
    result.append(h(owner, 'span', { class: 'dt-ops-count', text: formatCount(total) }), bar);
    result.title = joined(trace.language, [...counts.slice(0, 20), ...otherCosts(trace.language, cost)]);
  }
  return result;
}

/** The counts that a narrow page has no columns for. */
function otherCosts(language: Language, cost: ILedgerCounts): string[] {
  const copies = copiesText(cost);
  return [
    copies && sentence(language, 'lines.copied', { copies }),
    cost.syncs > 0 ? sentence(language, 'lines.waited', { count: cost.syncs }) : '',
    cost.bytes > 0 ? sentence(language, 'lines.bytes', { size: formatBytes(cost.bytes) }) : ''
  ].filter(text => text !== '');
}

/** `→2 ←1 ⇄3`: to a device, from one, between two. */
function copiesText({ h2d, d2h, d2d }: ILedgerCounts): string {
  const parts = [
    ['→', h2d],
    ['←', d2h],
    ['⇄', d2d]
  ] as const;
  return parts
    .filter(([, count]) => count > 0)
    .map(([sign, count]) => sign + formatCount(count))
    .join(' ');
}

/** The text in pieces: each has a token's colour, and a finding's span is underlined. */
function pieces({ owner, trace }: ILinesContext, line: ILine, tokens: readonly IToken[]): Array<HTMLElement | string> {
  const result = segmentsOf(line.text.slice(0, LONGEST), tokens, line.marks).map(({ text, token, mark }) => {
    const names = [token ? `dt-${token}` : '', mark ? `dt-mark dt-mark-${mark}` : ''];
    return token || mark ? h(owner, 'span', { class: names.join(' ').trim(), text }) : text;
  });
  const { length } = line.text;
  return length > LONGEST ? [...result, sentence(trace.language, 'text.cut', { count: length })] : result;
}

/** Tags at the end of the line: a finding's sign, `created`, `moved`. */
function tags({ owner, trace }: ILinesContext, line: ILine): HTMLElement[] {
  const counts = new Map<IMark['kind'], number>();
  line.marks.forEach(({ kind }) => counts.set(kind, (counts.get(kind) ?? 0) + 1));
  const found = [...counts].map(([kind, count]) => {
    const isStory = kind === 'born' || kind === 'moved';
    const tag = kind === 'born' ? 'lines.created-tag' : 'lines.moved-tag';
    const sign = isStory ? sentence(trace.language, tag) : severityLook(kind, false).sign;
    const text = count > 1 ? `${sign} ×${count}` : sign;
    return h(owner, 'span', { class: `dt-tag dt-tag-${kind}`, text });
  });
  const text = sentence(trace.language, 'lines.autocast-tag', { dtype: line.autocast });
  return line.autocast === '' ? found : [...found, h(owner, 'span', { class: 'dt-tag', text })];
}
