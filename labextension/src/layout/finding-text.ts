/**
 * A finding in words that are put together here: the rest of its words come from Python as they are.
 */
import type { IFinding } from '../model/findings';
import { opName, siteLabel, type ITrace } from '../model/trace';
import { clipped } from './units';

/** More lines of one edit are not shown. */
export const MOST_EDIT_LINES = 24;

/** The label of the button that shows the findings that are left. */
export function moreLabel(left: readonly IFinding[]): string {
  const notes = left.every(finding => finding.severity === 'note');
  return `Show ${left.length} ${notes ? (left.length === 1 ? 'note' : 'notes') : 'more'}`;
}

/** The first line of some code, with an ellipsis where more follows. */
export function firstLine(text: string): string {
  const end = text.indexOf('\n');
  const line = end < 0 ? text : `${text.slice(0, end)} …`;
  return clipped(line, 160);
}

/** The finding as text to paste: site, op, devices, message and fix. */
export function plainText(trace: ITrace, finding: IFinding): string {
  const { site, op, devices, message, help } = finding;
  const where = [siteLabel(trace, site), op < 0 ? '' : opName(trace, op), devices.join(' + ')];
  return [where.filter(part => part !== '').join('  '), message, help].filter(line => line !== '').join('\n');
}

/** The least indent of the lines of some texts. */
export function commonIndent(texts: readonly string[]): number {
  const lines = texts.flatMap(text => text.split('\n', MOST_EDIT_LINES)).filter(line => line.trim() !== '');
  return lines.reduce((least, line) => Math.min(least, line.length - line.trimStart().length), Infinity);
}
