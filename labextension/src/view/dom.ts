/**
 * Elements made from data that nobody vouches for: text only ever becomes text.
 */
import { clipped } from '../layout/units';
import type { Language } from '../model/words/catalogue';
import { languageAround } from './language';

export interface IProperties {
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

export function button(owner: Node, label: string, properties: IProperties = {}): HTMLButtonElement {
  return h(owner, 'button', {
    text: label,
    ...properties,
    class: `dt-button ${properties.class ?? ''}`.trim(),
    attributes: { type: 'button', ...properties.attributes }
  });
}

/** A prefix for the ids of a view's elements that no other view of the page has; without it labels of one report would name another's. */
export function newId(): string {
  const [random] = crypto.getRandomValues(new Uint32Array(1));
  return `dt-${random.toString(36)}`;
}
