/**
 * The titles of groups of ranks over their rows: buttons that show each rank of the group, or again the one that stands for it.
 */
import { rankRanges, type IRankGroup } from '../layout/ranks';
import { toggleRanks } from '../layout/timeline-state';
import { sentence } from '../model/words/catalogue';
import type { Disposables } from './disposables';
import { button, h } from './dom';
import type { IPlot } from './timeline-pointer';

export class RankTitles {
  readonly node: HTMLElement;
  private readonly _content: HTMLElement;
  private _groups: readonly IRankGroup[] = [];
  private _titles: readonly HTMLElement[] = [];

  constructor(
    private readonly _owner: Node,
    private readonly _plot: IPlot,
    private readonly _disposables: Disposables
  ) {
    this._content = h(_owner, 'div', { class: 'dt-rank-rows' });
    this.node = h(_owner, 'div', { class: 'dt-ranks' }, this._content);
    // Either scrolls with the other: the rows by hand, the titles where the keyboard goes to one that is out of view.
    _disposables.listen(_plot.node, 'scroll', () => (this.node.scrollTop = _plot.node.scrollTop), { passive: true });
    _disposables.listen(this.node, 'scroll', () => (_plot.node.scrollTop = this.node.scrollTop), { passive: true });
    this.update();
  }

  update(): void {
    const { timeline, stack, opened } = this._plot.state;
    const { groups } = timeline.ranks;
    this.node.hidden = groups.length === 0;
    if (groups !== this._groups) {
      this._groups = groups;
      this._titles = groups.map(group => this._title(group));
      this._content.replaceChildren(...this._titles);
    }
    this.node.style.top = `${timeline.header.height}px`;
    this._content.style.height = `${stack.height}px`;
    for (const { kind, index, y } of stack.rows) {
      if (kind === 'ranks') {
        this._titles[index].style.top = `${y}px`;
        if (groups[index].ranks.length > 1) {
          this._titles[index].setAttribute('aria-expanded', String(opened.has(groups[index].ranks[0])));
        }
      }
    }
    this.node.scrollTop = this._plot.node.scrollTop;
  }

  private _title(group: IRankGroup): HTMLElement {
    const text = titleOf(this._plot, group);
    const data = { ranks: rankRanges(group.ranks) };
    if (group.ranks.length === 1) {
      return h(this._owner, 'span', { class: 'dt-rank-title', text, data });
    }
    const title = button(this._owner, text, { class: 'dt-rank-title', data });
    this._disposables.listen(title, 'click', () => {
      this._plot.change(toggleRanks(this._plot.state, group.ranks[0]));
    });
    return title;
  }
}

function titleOf({ state }: IPlot, { ranks, ops, isLeftOut }: IRankGroup): string {
  const { trace, ranks: all } = state.timeline;
  const words = { ranks: rankRanges(ranks), total: all.total };
  if (isLeftOut) {
    return sentence(trace.language, 'timeline.ranks-left-out', words);
  }
  return ranks.length === 1
    ? sentence(trace.language, 'timeline.one-of-ranks', { ...words, ops })
    : sentence(trace.language, 'timeline.ranks-alike', { ...words, ops });
}
