/**
 * The tabs of traces that are open, and their way through a reload of the page.
 */
import type { ILayoutRestorer } from '@jupyterlab/application';
import { WidgetTracker, type MainAreaWidget } from '@jupyterlab/apputils';
import type { ITabArgs } from './tab';

/** Opens a tab again; takes what the layout kept of it. */
export const RESTORE = 'devtrace:restore-trace';

export class Tabs {
  private readonly _args = new WeakMap<MainAreaWidget, ITabArgs>();
  private readonly _tracker = new WidgetTracker<MainAreaWidget>({ namespace: 'devtrace-traces' });

  add(tab: MainAreaWidget, args: ITabArgs): void {
    this._args.set(tab, args);
    void this._tracker.add(tab);
  }

  has(id: string): boolean {
    return this._tracker.find(tab => tab.id === id) !== undefined;
  }

  /** Let the layout keep them; the command must be there. */
  keepIn(restorer: ILayoutRestorer): void {
    void restorer.restore(this._tracker, {
      command: RESTORE,
      args: tab => ({ ...this._args.get(tab) }),
      name: tab => tab.id
    });
  }
}
