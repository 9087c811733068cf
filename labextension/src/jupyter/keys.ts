/**
 * In Notebook 7 keys are looked up as shortcuts before they get to the report (JupyterLab does so after it): those that a report
 * answers are kept for it.
 */
const SUPPRESSES = 'data-lm-suppress-shortcuts';
const KEYS = /^(Arrow(Left|Right|Up|Down)|Home|End|Enter|Escape|[ +=-])$/;

/** Until the result is called. Shift+Enter and what has Ctrl, Meta or Alt stay the notebook's. */
export function keepKeysFor(node: HTMLElement): () => void {
  if (node.ownerDocument.body.dataset['notebook'] === undefined) {
    return () => undefined;
  }
  const isKept = ({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean =>
    KEYS.test(key) && !ctrlKey && !metaKey && !altKey && !(shiftKey && key === 'Enter');
  const decide = (event: KeyboardEvent): void => {
    // On the element itself: a shortcut whose selector it matches is found before its ancestors are asked.
    if (event.target instanceof Element && node.contains(event.target)) {
      event.target.toggleAttribute(SUPPRESSES, isKept(event));
    }
  };
  window.addEventListener('keydown', decide, true);
  return () => {
    window.removeEventListener('keydown', decide, true);
  };
}
