/**
 * Elements made from data that nobody vouches for: text only ever becomes text.
 */
import { clipped } from '../layout/units';
import type { Language } from '../model/words/catalogue';
import type { Disposables } from './disposables';
import { languageAround } from './language';

interface IProperties {
  readonly class?: string;
  readonly text?: string;
  readonly title?: string;
  readonly role?: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly aria?: Readonly<Record<string, string>>;
  readonly attributes?: Readonly<Record<string, string>>;
  /** CSS custom properties and the like, by `setProperty`. */
  readonly style?: Readonly<Record<string, string>>;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  owner: Node,
  tag: K,
  properties: IProperties = {},
  ...children: Array<Node | string>
): HTMLElementTagNameMap[K] {
  const element = (owner.ownerDocument ?? (owner as Document)).createElement(tag);
  const language = (): Language => languageAround(owner);
  element.className = properties.class ?? '';
  set(element, 'title', properties.title === undefined ? undefined : clipped(properties.title, language));
  set(element, 'role', properties.role);
  each(properties.data, (name, value) => (element.dataset[name] = value));
  each(properties.aria, (name, value) => {
    element.setAttribute(`aria-${name}`, value);
  });
  each(properties.attributes, (name, value) => {
    element.setAttribute(name, value);
  });
  each(properties.style, (name, value) => {
    element.style.setProperty(name, value);
  });
  element.append(...(properties.text === undefined ? [] : [clipped(properties.text, language)]), ...children);
  return element;
}

function set(element: HTMLElement, name: string, value: string | undefined): void {
  if (value !== undefined) {
    element.setAttribute(name, value);
  }
}

function each(values: Readonly<Record<string, string>> | undefined, act: (name: string, value: string) => void): void {
  for (const [name, value] of Object.entries(values ?? {})) {
    act(name, value);
  }
}

/** A button that does `act` when it is pressed, until `scope` ends. */
export function button(
  owner: Node,
  scope: Disposables,
  label: string,
  act: (event: MouseEvent) => void,
  properties: IProperties = {}
): HTMLButtonElement {
  const look = { text: label, ...properties, class: `dt-button ${properties.class ?? ''}`.trim() };
  const node = h(owner, 'button', { ...look, attributes: { type: 'button' } });
  scope.listen(node, 'click', act);
  return node;
}

/** A field for words to look for. What is typed there reaches no shortcut of the notebook. */
export function searchField(
  owner: Node,
  scope: Disposables,
  label: string,
  hint: string,
  search: (words: string) => void
): HTMLElement {
  const attributes = { type: 'search', placeholder: hint, spellcheck: 'false' };
  const field = h(owner, 'input', { class: 'dt-input dt-search', aria: { label }, attributes });
  scope.listen(field, 'input', () => search(field.value));
  scope.listen(field, 'keydown', event => event.stopPropagation());
  return field;
}

/** A prefix for the ids of a view's elements that no other view of the page has; without it labels of one report would name another's. */
export function newId(): string {
  const [random] = crypto.getRandomValues(new Uint32Array(1));
  return `dt-${random.toString(36)}`;
}
