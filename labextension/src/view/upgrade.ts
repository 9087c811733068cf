/**
 * The interactive report in the place of the static one that came with the page: only once it stands, or not at all.
 */
import css from '../../style/base.css';
import { Disposables } from './disposables';
import { showTrace } from './page';
import { isDark, onThemeChange } from './theme';

/** Give the page our style; false where it allows none. */
export function addStyle(el: HTMLElement): boolean {
  const root = el.getRootNode();
  const owner = root instanceof ShadowRoot ? root : el.ownerDocument.head;
  const known = owner.querySelector<HTMLStyleElement>('#devtrace-style');
  if (known) {
    return known.sheet !== null;
  }
  const style = el.ownerDocument.createElement('style');
  style.id = 'devtrace-style';
  style.textContent = css;
  owner.append(style);
  return style.sheet !== null;
}

/** Replace what `slot` shows by the report of a trace. What fails leaves the slot as it is, without an error in the page. */
export async function upgrade(slot: HTMLElement, trace: unknown): Promise<boolean> {
  // Laid out at its full width, so that the swap shows nothing half-made; not seen, not read, not reached until then.
  const stage = slot.ownerDocument.createElement('div');
  Object.assign(stage.style, { height: '0', overflow: 'hidden', visibility: 'hidden' });
  slot.append(stage);
  if (!addStyle(slot)) {
    stage.remove();
    return false;
  }
  const shown = showTrace(stage, trace);
  await shown.done;
  if (stage.querySelector('.dt-report') === null) {
    shown.dispose();
    stage.remove();
    return false;
  }
  stage.removeAttribute('style');
  slot.replaceChildren(stage);
  onThemeChange(stage, new Disposables(), () => {
    shareScheme(stage);
  });
  shareScheme(stage);
  return true;
}

/** A frame shows the ground that it lies on only where both pages have one colour scheme; else it is white in a dark page. */
function shareScheme(el: HTMLElement): void {
  const { defaultView, documentElement } = el.ownerDocument;
  const scheme = isDark(el) ? 'dark' : 'light';
  if (defaultView?.frameElement && documentElement.style.colorScheme !== scheme) {
    documentElement.style.colorScheme = scheme;
  }
}
