/**
 * The language of the page: of what belongs to no trace, and of traces that do not say in which they were made.
 */
import { languageOf, type Language } from '../model/words/catalogue';

/** JupyterLab's display language, which the extension puts on the body; elsewhere the page's own. */
export function languageAround(node: Node): Language {
  const { body, documentElement: root } = node.ownerDocument ?? (node as Document);
  return languageOf(body.dataset['dtLanguage'] ?? root.lang) ?? 'en';
}
