/**
 * One line of source with its ledger.
 */
import type { IToken } from '../layout/python';
import { segmentsOf } from '../layout/segments';
import type { ILine, IMark } from '../layout/source';
import { formatBytes, formatCount } from '../layout/units';
import { countOps, type ILedgerCounts } from '../model/ledger';
import { deviceName, type ITrace } from '../model/trace';
import { severityLook } from '../paint/palette';
import { h } from './dom';

export const COLUMNS = [
  { name: 'Line', title: 'Number of the line' },
  { name: 'Ops', title: 'Ops that the line ran, by device' },
  { name: 'Copies', title: 'Copies between devices: to a device, from one, between two' },
  { name: 'Waits', title: 'How often the host waited for a device' },
  { name: 'Moved', title: 'Bytes copied between devices' },
  { name: 'Source', title: 'The line' }
] as const;

/** No more of a line is shown. */
const LONGEST = 500;
/** A line that is indented further has no room left for what does not fit. */
const DEEPEST = 24;

/** The rows of all lines have these in common. */
export interface ILinesContext {
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
    cell('copies', cost ? copiesText(cost) : ''),
    cell('waits', cost && cost.syncs > 0 ? formatCount(cost.syncs) : ''),
    cell('bytes', cost && cost.bytes > 0 ? formatBytes(cost.bytes) : ''),
    h(
      owner,
      'code',
      { class: 'dt-text', role: 'gridcell', style: { '--dt-indent': `${indentOf(line.text)}ch` } },
      ...pieces(owner, line, tokens),
      ...tags(owner, line)
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
        counts.push(`${formatCount(count)} on ${deviceName(trace, device)}`);
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
    result.title = [...counts.slice(0, 20), ...otherCosts(cost)].join(', ');
  }
  return result;
}

/** The counts that a narrow page has no columns for. */
function otherCosts(cost: ILedgerCounts): string[] {
  return [
    copiesText(cost) && `copies ${copiesText(cost)}`,
    cost.syncs > 0 ? `waited ${formatCount(cost.syncs)} times` : '',
    cost.bytes > 0 ? `moved ${formatBytes(cost.bytes)}` : ''
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
function pieces(owner: Node, line: ILine, tokens: readonly IToken[]): Array<HTMLElement | string> {
  const result = segmentsOf(line.text.slice(0, LONGEST), tokens, line.marks).map(({ text, token, mark }) => {
    const names = [token ? `dt-${token}` : '', mark ? `dt-mark dt-mark-${mark}` : ''];
    return token || mark ? h(owner, 'span', { class: names.join(' ').trim(), text }) : text;
  });
  return line.text.length > LONGEST ? [...result, `… (${formatCount(line.text.length)} characters)`] : result;
}

/** Tags at the end of the line: a finding's sign, `born`, `moved`. */
function tags(owner: Node, line: ILine): HTMLElement[] {
  const counts = new Map<IMark['kind'], number>();
  line.marks.forEach(({ kind }) => counts.set(kind, (counts.get(kind) ?? 0) + 1));
  return [...counts].map(([kind, count]) => {
    const sign = kind === 'born' || kind === 'moved' ? kind : severityLook(kind, false).sign;
    const text = count > 1 ? `${sign} ×${count}` : sign;
    return h(owner, 'span', { class: `dt-tag dt-tag-${kind}`, text });
  });
}
