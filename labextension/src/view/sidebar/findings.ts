/**
 * The findings of all traces of the notebook: those of each cell's last run; below them, a line each, what is clean and what is over.
 */
import { firstLine } from '../../layout/finding-text';
import { isFixed, type IRepair } from '../../model/repairs';
import { countsInWords, countsOf, split, type IEntry } from '../../model/entries';
import type { ISidebar } from '../../model/sidebar';
import { siteLabel } from '../../model/trace';
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
  const { body } = drawing;
  const isOver = ({ key }: IEntry): boolean => fixed.includes(key);
  if (found.length === 0 && clean.length === 0) {
    const text = entries.length === 0 ? 'Nothing has been traced yet.' : 'Nothing has been traced in this kernel yet.';
    body.append(h(body, 'p', { class: 'dt-none', text }));
  }
  drawGroups(found, drawing);
  for (const entry of past.filter(isOver)) {
    drawFixed(entry, repairs.get(entry.key), drawing);
  }
  drawClean(clean, drawing);
  drawFolded(
    'Earlier runs',
    past.filter(entry => !isOver(entry)),
    drawing
  );
  drawFolded('Earlier kernel', earlier, drawing);
}

/** Errors and warnings of the last run of each cell; notes, which ask for nothing, are counted apart. */
export function countFindings({ entries }: ISidebar): ICount[] {
  const { found, clean } = split(entries);
  const counts = countsOf([...found, ...clean]);
  const serious = counts.filter(([severity]) => severity !== 'note');
  const notes = counts.filter(([severity]) => severity === 'note');
  return [
    ...(serious.length > 0 ? [{ text: countsInWords(serious) }] : []),
    ...(notes.length > 0 ? [{ text: countsInWords(notes), isFaint: true }] : [])
  ];
}

/** What was fixed since the page was loaded: struck out, with what shows it. */
function drawFixed(entry: IEntry, repairs: ReadonlyMap<number, IRepair> | undefined, drawing: IDrawing): void {
  const { body } = drawing;
  const { outline, key } = entry;
  for (const [i, repair] of [...(repairs ?? [])].filter(([, each]) => isFixed(each))) {
    const site = outline.findings?.[i].site ?? -1;
    const code = site < 0 ? '' : firstLine(outline.strings[outline.sites.text[site]]);
    const what = h(body, 's', {}, `${siteLabel(outline, site)} `, h(body, 'code', { text: code }));
    const title = h(
      body,
      'span',
      { class: 'dt-side-fixed', data: { repair: 'fixed' } },
      '✓ ',
      what,
      ` ${repair.sentence}`
    );
    const fill = (into: HTMLElement): void => {
      drawGroups([entry], { ...drawing, body: into });
    };
    body.append(folding(drawing, { key: `fixed-${key}-${i}`, isOpen: false, summary: [title], fill }));
  }
}

/** All clean cells as one line, which opens to their notes. */
function drawClean(clean: readonly IEntry[], drawing: IDrawing): void {
  const { body } = drawing;
  if (clean.length === 0) {
    return;
  }
  const names = clean.map(({ label }) => label);
  const shown = names.slice(-MOST_NAMES).join(', ');
  const more = names.length - MOST_NAMES;
  const text = `✓ No errors or warnings in ${more > 0 ? `${shown} and ${more} more` : shown}`;
  const notes = countsInWords(countsOf(clean));
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
  body.append(folding(drawing, { key: 'clean-findings', isOpen: false, summary, fill }));
}

function drawFolded(name: string, entries: readonly IEntry[], drawing: IDrawing): void {
  const { body } = drawing;
  const counts = countsInWords(countsOf(entries));
  if (counts !== '') {
    const fill = (into: HTMLElement): void => {
      drawGroups(entries.filter(hasFindings), { ...drawing, body: into });
    };
    const title = h(body, 'span', { class: 'dt-faint', text: `${name}: ${counts}` });
    body.append(folding(drawing, { key: name, isOpen: false, summary: [title], fill }));
  }
}

/** The findings under the name of their run, the newest run first. */
function drawGroups(entries: readonly IEntry[], { body, scope, actions }: IDrawing, notes = false): void {
  for (const entry of [...entries].reverse()) {
    const group = h(body, 'div', { class: 'dt-side-group', data: { trace: entry.key } });
    const kernel = entry.isEarlier ? [' ', h(body, 'span', { class: 'dt-side-kernel', text: 'earlier kernel' })] : [];
    group.append(h(body, 'h4', {}, entry.label, ...kernel));
    body.append(group);
    dress(group, entry.outline);
    const host = {
      reveal: (site: number) => {
        actions.reveal(entry, site);
      },
      insert: (edits: Parameters<typeof actions.insert>[1]) => {
        actions.insert(entry, edits);
      },
      repairs: actions.repairs(entry)
    };
    scope.add(mountFindings(group, entry.outline, new Selection(entry.outline, host), notes));
  }
}

function hasFindings({ outline }: IEntry): boolean {
  return (outline.findings?.length ?? 0) > 0;
}
