/**
 * `devtrace.LiveView()` as an anywidget: its view for front ends that have no extension of ours (marimo, VS Code, Colab). The messages are
 * those of the ipywidget. A front end's own button stops the cell: a busy kernel does not hear a widget.
 */
import { LiveOps } from '../model/live';
import { languageOf } from '../model/words/catalogue';
import { mountLive } from './live';
import { addStyle } from './upgrade';

type Heard = (content: unknown, buffers: readonly DataView[]) => void;

/** What of anywidget's model the view needs. */
interface IModel {
  get(name: 'language'): unknown;
  on(event: 'msg:custom', heard: Heard): void;
  off(event: 'msg:custom', heard: Heard): void;
  send(content: unknown): void;
}

function render({ model, el }: { readonly model: IModel; readonly el: HTMLElement }): () => void {
  const ops = new LiveOps();
  addStyle(el);
  const { update, dispose } = mountLive(el, ops, null, languageOf(String(model.get('language'))) ?? 'en');
  const heard: Heard = (content, buffers) => {
    if (ops.take(content, buffers)) {
      update();
    }
  };
  model.on('msg:custom', heard);
  model.send({ kind: 'ready' });
  return () => {
    model.off('msg:custom', heard);
    dispose();
  };
}

export default { render };
