/**
 * `devtrace.LiveView()`: the ipywidget's model and view. Its messages are in messages.json, their bytes in live_view.py; a message that does
 * not fit is refused with one line.
 */
import { DOMWidgetModel, DOMWidgetView, type ISerializers } from '@jupyter-widgets/base';
import { LiveOps } from '../model/live';
import { mountLive, type ILive } from '../view/live';

export class DevtraceLiveModel extends DOMWidgetModel {
  readonly ops = new LiveOps();

  static override serializers: ISerializers = { ...DOMWidgetModel.serializers };

  override defaults() {
    return {
      ...super.defaults(),
      _model_name: 'DevtraceLiveModel',
      _model_module: 'devtrace',
      _view_name: 'DevtraceLiveView',
      _view_module: 'devtrace'
    };
  }

  override initialize(attributes: never, options: never): void {
    super.initialize(attributes, options);
    this.on('msg:custom', (content: unknown, buffers: readonly DataView[]) => {
      if (this.ops.take(content, buffers)) {
        this.trigger('devtrace:grown');
      } else {
        console.error('devtrace: refused a message that is none of LiveView’s');
      }
    });
    if (this.comm_live) {
      this.send({ kind: 'ready' });
    }
  }

  /** Interrupts the cell through the kernel's own channel where there is one: a busy kernel does not hear its comms. */
  stop(): void {
    const { kernel } = this.widget_manager as { kernel?: { interrupt(): Promise<void> } | null };
    if (kernel) {
      void kernel.interrupt();
    } else {
      this.send({ kind: 'stop' });
    }
  }
}

export class DevtraceLiveView extends DOMWidgetView {
  private _shown?: ILive;

  override render(): void {
    const { model } = this;
    if (!(model instanceof DevtraceLiveModel)) {
      return;
    }
    this._shown = mountLive(this.el, model.ops, () => {
      model.stop();
    });
    this.listenTo(model, 'devtrace:grown', this._shown.update);
  }

  override remove(): this {
    this._shown?.dispose();
    super.remove();
    return this;
  }
}
