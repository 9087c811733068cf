/**
 * The findings of all traces of the notebook: those of each cell's last run; below them, a line each, what is clean and what is over.
 */
import { firstLine } from '../../layout/finding-text';
import { hasRun, type IRepair } from '../../model/repairs';
import { countsInWords, countsOf, isAllClear, split, type IEntry } from '../../model/entries';
import type { ISidebar } from '../../model/sidebar';
import { siteLabel } from '../../model/trace';
import { joined, sentence, type Language } from '../../model/words/catalogue';
import { h } from '../dom';
import { mountFindings } from '../findings';
import { Selection } from '../selection';
import { dress } from '../theme';
import type { IDrawing } from './drawing';
import { folding, type ICount } from './section';

/** Cells that one line names; the others are counted. */
const MOST_NAMES = 3;

export function drawFindings({ entries, repairs, fixed }: ISidebar, drawing: IDrawing): void {
  const { found, clean, past, earlier } = split(entries);
  const { body, language } = drawing;
  const isOver = ({ key }: IEntry): boolean => fixed.includes(key);
  const isOpen = (entry: IEntry): boolean => !isOver(entry);
  const isQuiet = (entry: IEntry): boolean => !isAllClear(entry);
  if (found.length + clean.length + past.length === 0) {
    const text = sentence(language, entries.length === 0 ? 'panel.nothing-traced' : 'panel.nothing-here');
    body.append(h(body, 'p', { class: 'dt-none', text }));
  }
  drawGroups(found, drawing);
  for (const entry of past.filter(isOver)) {
    drawFixed(entry, repairs.get(entry.key), drawing);
  }
  drawClean('panel.clean', clean.filter(isAllClear), drawing);
  drawClean('panel.quiet', clean.filter(isQuiet), drawing);
  drawFolded('panel.earlier-runs', past.filter(isOpen), drawing);
  drawFolded('panel.earlier-findings', earlier, drawing);
}

/** Errors and warnings of the last run of each cell; notes, which ask for nothing, are counted apart. */
export function countFindings({ entries }: ISidebar, language: Language): ICount[] {
  const { found, clean } = split(entries);
  const counts = countsOf([...found, ...clean]);
  const serious = counts.filter(([severity]) => severity !== 'note');
  const notes = counts.filter(([severity]) => severity === 'note');
  return [
    ...(serious.length > 0 ? [{ text: countsInWords(language, serious) }] : []),
    ...(notes.length > 0 ? [{ text: countsInWords(language, notes), isFaint: true }] : [])
  ];
}

/** What was fixed since the page was loaded: struck out, with what shows it. */
function drawFixed(entry: IEntry, repairs: ReadonlyMap<number, IRepair> | undefined, drawing: IDrawing): void {
  const { body } = drawing;
  const { outline, key } = entry;
  for (const [i, repair] of [...(repairs ?? [])].filter(([, each]) => hasRun(each))) {
    const site = outline.findings?.[i].site ?? -1;
    const code = site < 0 ? '' : firstLine(outline.strings[outline.sites.text[site]]);
    const what = h(body, 's', {}, `${siteLabel(outline, site)} `, h(body, 'code', { text: code }));
    const look = { class: 'dt-side-fixed', data: { repair: 'ran' } };
    const title = h(body, 'span', look, '✓ ', what, ` ${repair.sentence}`);
    const fill = (into: HTMLElement): void => {
      drawGroups([entry], { ...drawing, body: into });
    };
    body.append(folding(drawing, { key: `fixed-${key}-${i}`, isOpen: false, summary: [title], fill }));
  }
}

/** Cells without errors and warnings as one line, which opens to their notes; above it, what some of them failed of. */
function drawClean(key: 'panel.clean' | 'panel.quiet', clean: readonly IEntry[], drawing: IDrawing): void {
  const { body, language } = drawing;
  if (clean.length === 0) {
    return;
  }
  const names = clean.map(({ label }) => label);
  const shown = joined(language, names.slice(-MOST_NAMES));
  const count = names.length - MOST_NAMES;
  const all = count > 0 ? sentence(language, 'panel.names-and-more', { names: shown, count }) : shown;
  const text = sentence(language, key, { names: all });
  for (const { outline } of clean.filter(entry => entry.outline.closing !== '')) {
    body.append(h(body, 'p', { class: 'dt-none', text: outline.closing }));
  }
  const notes = countsInWords(language, countsOf(clean));
  if (notes === '') {
    body.append(h(body, 'p', { class: 'dt-none dt-side-clean-line', text }));
    return;
  }
  const summary = [
    h(body, 'span', { class: 'dt-faint dt-side-clean-line', text }),
    h(body, 'span', { class: 'dt-grow' }),
    h(body, 'span', { class: 'dt-faint dt-side-note-count', text: notes })
  ];
  const fill = (into: HTMLElement): void => {
    drawGroups(clean.filter(hasFindings), { ...drawing, body: into }, true);
  };
  body.append(folding(drawing, { key: `${key}-findings`, isOpen: false, summary, fill }));
}

function drawFolded(
  key: 'panel.earlier-runs' | 'panel.earlier-findings',
  entries: readonly IEntry[],
  drawing: IDrawing
): void {
  const { body, language } = drawing;
  const counts = countsInWords(language, countsOf(entries));
  if (counts !== '') {
    const fill = (into: HTMLElement): void => {
      drawGroups(entries.filter(hasFindings), { ...drawing, body: into });
    };
    const title = h(body, 'span', { class: 'dt-faint', text: sentence(language, key, { counts }) });
    body.append(folding(drawing, { key, isOpen: false, summary: [title], fill }));
  }
}

/** The findings under the name of their run, the newest run first. */
function drawGroups(entries: readonly IEntry[], { body, scope, actions, language }: IDrawing, notes = false): void {
  for (const entry of [...entries].reverse()) {
    const group = h(body, 'div', { class: 'dt-side-group', data: { trace: entry.key } });
    const text = sentence(language, 'panel.earlier-kernel');
    const kernel = entry.isEarlier ? [' ', h(body, 'span', { class: 'dt-side-kernel', text })] : [];
    group.append(h(body, 'h4', {}, entry.label, ...kernel));
    body.append(group);
    dress(group, entry.outline);
    scope.add(mountFindings(group, entry.outline, new Selection(entry.outline, actions.hostOf(entry)), notes));
  }
}

function hasFindings({ outline }: IEntry): boolean {
  return (outline.findings?.length ?? 0) > 0;
}
