/**
 * A finding as text and as the parts that a view lays out. Its words come from Python as they are.
 */
import type { IEdit, IFinding, IStoryLine } from '../model/findings';
import { opName, siteLabel, sourceLabel, type ITrace } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { formatCount } from './units';

/** More lines of one edit are not shown. */
export const MOST_EDIT_LINES = 24;

/** The label of the button that shows the findings that are left. */
export function moreLabel(language: Language, left: readonly IFinding[]): string {
  const areNotes = left.every(finding => finding.severity === 'note');
  return sentence(language, areNotes ? 'findings.show-notes' : 'findings.show-more', { count: left.length });
}

const LONGEST_CODE = 160;

function shortened(code: string): string {
  return code.length <= LONGEST_CODE ? code : `${code.slice(0, LONGEST_CODE)}…`;
}

/** The first line of some code, with an ellipsis where more follows. */
export function firstLine(text: string): string {
  const end = text.indexOf('\n');
  const line = end < 0 ? text : `${text.slice(0, end)} …`;
  return shortened(line);
}

/** The finding as text to paste, as Python's text form has it: message, failing line, its other lines, fix; and the edits. */
export function plainText(trace: ITrace, finding: IFinding, sign: string): string {
  const { message, edits } = finding;
  const lines = [
    `${sign} ${message}`,
    failingLine(trace, finding),
    ...finding.lines.map(line => storyLine(trace, line)),
    `  ${fixOf(trace.language, finding)}`,
    ...edits.flatMap(edit => editLines(trace.language, edit))
  ];
  return lines.filter(line => line.trim() !== '').join('\n');
}

/** What is to be done, and where nobody ran that, so. */
export function fixOf(language: Language, { help, edits }: IFinding): string {
  const isUntried = edits.some(({ grade }) => grade === 'not tried');
  const offered = isUntried ? sentence(language, 'fix.not-tried', { help }) : help;
  return help === '' ? '' : `${sentence(language, 'label.fix')}  ${offered}`;
}

/** What to type: the new lines of its edits, else its advice, if that has code. */
export function fixText({ edits, help }: IFinding): string {
  return edits.map(({ after }) => after).join('\n') || (help.includes('`') ? help : '');
}

/** The op of a finding; its rule where it has none that is known. */
export function opOrRule(trace: ITrace, { op, rule }: IFinding): string {
  return (op >= 0 && opName(trace, op)) || rule;
}

/** `In[3] line 10   self.out_head(x)   addmm   cuda:0 + cpu` */
function failingLine(trace: ITrace, finding: IFinding): string {
  const { site, count, devices } = finding;
  const times = count > 1 ? `${formatCount(count)}×` : '';
  const what = opOrRule(trace, finding);
  return filled([siteLabel(trace, site), codeOf(trace, site), times, what, devices.join(' + ')], '   ');
}

function storyLine(trace: ITrace, { label, site, remark }: IStoryLine): string {
  return filled([label, siteLabel(trace, site), codeOf(trace, site), remark], '  ');
}

function filled(parts: readonly string[], between: string): string {
  return `  ${parts.filter(part => part !== '').join(between)}`;
}

function editLines(language: Language, edit: IEdit): string[] {
  const changed = (sign: string, text: string): string[] =>
    text === '' ? [] : text.split('\n', MOST_EDIT_LINES).map(line => `    ${sign} ${line}`);
  return [`  ${editLabel(language, edit)}`, ...changed('-', edit.before), ...changed('+', edit.after)];
}

export function editLabel(language: Language, { cell, file, line, before }: IEdit): string {
  return lineLabel(language, sourceLabel(cell, file), line, before);
}

/** Where an edit goes: `In[5] line 1`, or below that line where it takes nothing out. */
export function lineLabel(language: Language, source: string, line: number, before: string): string {
  const where = { source, line: String(line) };
  return before !== ''
    ? sentence(language, 'edit.line', where)
    : line === 0
      ? sentence(language, 'edit.top', { source })
      : sentence(language, 'edit.below', where);
}

/** A site's source in one line. */
function codeOf({ sites, strings }: ITrace, site: number): string {
  return site < 0 ? '' : shortened(strings[sites.text[site]].trim().replace(/\s+/g, ' '));
}

/** The least indent of the lines of some texts. */
export function commonIndent(texts: readonly string[]): number {
  const lines = texts.flatMap(text => text.split('\n', MOST_EDIT_LINES)).filter(line => line.trim() !== '');
  return lines.reduce((least, line) => Math.min(least, line.length - line.trimStart().length), Infinity);
}
