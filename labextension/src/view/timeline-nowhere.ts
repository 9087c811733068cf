/**
 * Where no op is in view: a sentence that says so, and the ways back.
 */
import { nowhere } from '../layout/nowhere';
import { closeTo } from '../layout/reveal';
import { show, showAll } from '../layout/timeline-state';
import { sentence } from '../model/words/catalogue';
import type { Disposables } from './disposables';
import { button, h } from './dom';
import type { IPlot } from './timeline-pointer';

export class NowhereHint {
  readonly node: HTMLElement;
  private readonly _before: HTMLButtonElement;
  private readonly _after: HTMLButtonElement;
  private _ops = { before: -1, after: -1 };

  constructor(
    owner: Node,
    private readonly _plot: IPlot,
    disposables: Disposables
  ) {
    const { language } = _plot.state.timeline.trace;
    this._before = button(owner, sentence(language, 'nowhere.before'), { class: 'dt-small' });
    this._after = button(owner, sentence(language, 'nowhere.after'), { class: 'dt-small' });
    const all = button(owner, sentence(language, 'nowhere.all'), { class: 'dt-small' });
    const text = h(owner, 'span', { text: sentence(language, 'nowhere.text') });
    this.node = h(owner, 'div', { class: 'dt-nowhere', role: 'status' }, text, this._before, this._after, all);
    this.node.hidden = true;
    disposables.listen(this._before, 'click', () => {
      this._goTo(this._ops.before);
    });
    disposables.listen(this._after, 'click', () => {
      this._goTo(this._ops.after);
    });
    disposables.listen(all, 'click', () => {
      _plot.change(showAll(_plot.state, _plot.now));
      _plot.node.focus();
    });
  }

  update(): void {
    const found = nowhere(this._plot.state);
    this.node.hidden = found === null;
    if (found) {
      this._ops = found;
      this._before.hidden = found.before < 0;
      this._after.hidden = found.after < 0;
    }
  }

  private _goTo(op: number): void {
    const { state, now, node } = this._plot;
    const range = closeTo(state.timeline, op, -1);
    if (range) {
      this._plot.change(show(state, range, now));
    }
    node.focus();
  }
}
