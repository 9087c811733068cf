/**
 * Lines that an edit takes out and puts in, below where that is.
 */
import { commonIndent, MOST_EDIT_LINES } from '../layout/finding-text';
import { h } from './dom';

interface IChangedLines {
  readonly before: string;
  readonly after: string;
}

export function changePreview(owner: Node, at: Node, { before, after }: IChangedLines, ...tags: Node[]): HTMLElement {
  const indent = commonIndent([before, after]);
  const lines = (sign: string, text: string, kind: string): HTMLElement[] =>
    text === ''
      ? []
      : text
          .split('\n', MOST_EDIT_LINES)
          .map(line => h(owner, 'span', { class: `dt-edit-line ${kind}`, text: `${sign} ${line.slice(indent)}` }));
  return h(
    owner,
    'span',
    { class: 'dt-edit' },
    h(owner, 'span', { class: 'dt-faint' }, at, ' ', ...tags),
    h(owner, 'code', {}, ...lines('−', before, 'dt-removed'), ...lines('+', after, 'dt-added'))
  );
}
