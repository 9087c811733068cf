/**
 * The panel as a widget of the application: its page is there only while it is visible.
 */
import { Widget } from '@lumino/widgets';
import { NOWHERE, type ISidebar } from '../model/sidebar';
import { sentence } from '../model/words/catalogue';
import { languageAround } from '../view/language';
import type { IActions } from '../view/sidebar/drawing';
import { mountSidebar, type IMounted } from '../view/sidebar/sidebar';
import { traceIcon } from './icon';

export const SIDEBAR_ID = 'devtrace-sidebar';

export class SidebarWidget extends Widget {
  private _shown = NOWHERE;
  private _mounted: IMounted | null = null;

  constructor(
    private readonly _actions: IActions,
    private readonly _onVisible: () => void
  ) {
    super();
    this.id = SIDEBAR_ID;
    this.addClass('dt-sidebar-widget');
    this.title.icon = traceIcon;
    this.title.caption = sentence(languageAround(this.node), 'panel.name');
  }

  display(shown: ISidebar): void {
    this._shown = shown;
    this._mounted?.update(shown);
  }

  protected override onAfterShow(): void {
    this._mounted ??= mountSidebar(this.node, this._actions);
    this._mounted.update(this._shown);
    this._onVisible();
  }

  protected override onAfterAttach(): void {
    if (this.isVisible) {
      this.onAfterShow();
    }
  }

  protected override onBeforeHide(): void {
    this._unmount();
  }

  protected override onBeforeDetach(): void {
    this._unmount();
  }

  protected override onActivateRequest(): void {
    const first = this.node.querySelector<HTMLElement>('button, input:checked, summary');
    (first ?? this.node).focus();
  }

  private _unmount(): void {
    if (this._mounted) {
      this._mounted.dispose();
      this._mounted = null;
      this._onVisible();
    }
  }
}
