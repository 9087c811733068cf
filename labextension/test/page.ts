/**
 * As much of a page as the views need to draw themselves, for tests that read what they say.
 */
type Child = FakeElement | FakeText;

class FakeText {
  parent: FakeElement | null = null;

  constructor(
    readonly ownerDocument: FakePage,
    readonly textContent: string
  ) {}
}

class FakeStyle {
  [name: string]: unknown;

  readonly setProperty = (name: string, value: string): void => {
    this[name] = value;
  };
}

class FakeElement {
  parent: FakeElement | null = null;
  children: Child[] = [];
  className = '';
  title = '';
  hidden = false;
  open = false;
  disabled = false;
  checked = false;
  value = '';
  tabIndex = -1;
  scrollTop = 0;
  readonly selectedIndex = 0;
  readonly clientWidth = 800;
  readonly clientHeight = 400;
  readonly offsetHeight = 20;
  readonly attributes = new Map<string, string>();
  readonly dataset: Record<string, string | undefined> = {};
  readonly style = new FakeStyle();
  readonly classList = { add: nothing, toggle: nothing };
  readonly addEventListener = nothing;
  readonly focus = nothing;

  constructor(readonly ownerDocument: FakePage) {}

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }

  append(...nodes: Array<Child | string>): void {
    for (const node of nodes) {
      const child = typeof node === 'string' ? new FakeText(this.ownerDocument, node) : node;
      child.parent?.drop(child);
      child.parent = this;
      this.children.push(child);
    }
  }

  prepend(...nodes: Child[]): void {
    const before = this.children.splice(0);
    this.append(...nodes, ...before);
  }

  replaceChildren(...nodes: Array<Child | string>): void {
    this.children = [];
    this.append(...nodes);
  }

  remove(): void {
    this.parent?.drop(this);
  }

  drop(child: Child): void {
    this.children = this.children.filter(each => each !== child);
  }

  get textContent(): string {
    return this.children.map(child => child.textContent).join('');
  }

  set textContent(text: string) {
    this.replaceChildren(...(text === '' ? [] : [text]));
  }

  querySelector(selector: string): FakeElement | null {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  querySelectorAll(selector: string): FakeElement[] {
    return elementsIn(this).filter(({ className }) => className.split(' ').includes(selector.slice(1)));
  }

  get childElementCount(): number {
    return this.children.filter(child => child instanceof FakeElement).length;
  }

  closest(): null {
    return null;
  }

  contains(): boolean {
    return false;
  }

  getContext(): null {
    return null;
  }

  getBoundingClientRect(): { top: number; left: number } {
    return { top: 0, left: 0 };
  }
}

class FakePage {
  readonly documentElement = { lang: '' };
  readonly body = new FakeElement(this);
  readonly defaultView = null;
  readonly activeElement = null;
  readonly addEventListener = nothing;

  createElement(): FakeElement {
    return new FakeElement(this);
  }

  createElementNS(): FakeElement {
    return new FakeElement(this);
  }

  createTextNode(text: string): FakeText {
    return new FakeText(this, text);
  }
}

/** Tells at once that what it observes has a size. */
class FakeResizeObserver {
  readonly disconnect = nothing;

  constructor(private readonly _changed: () => void) {}

  observe(): void {
    this._changed();
  }
}

class FakeMutationObserver {
  readonly observe = nothing;
  readonly disconnect = nothing;
}

function nothing(): void {
  return undefined;
}

function elementsIn(element: FakeElement): FakeElement[] {
  return element.children.flatMap(child => (child instanceof FakeElement ? [child, ...elementsIn(child)] : []));
}

/** Open a page for a test, and give the element that a view is to be mounted in. */
export function openPage(tag: string): HTMLElement {
  const page = new FakePage();
  Object.assign(page.body.dataset, { dtLanguage: tag, jpThemeLight: 'true' });
  Object.assign(globalThis, {
    document: page,
    window: globalThis,
    addEventListener: nothing,
    HTMLElement: FakeElement,
    ResizeObserver: FakeResizeObserver,
    MutationObserver: FakeMutationObserver,
    requestAnimationFrame: () => 1,
    cancelAnimationFrame: nothing
  });
  return page.body as unknown as HTMLElement;
}

const HEARD = ['title', 'aria-label', 'aria-roledescription', 'placeholder'];

/** All that a reader sees or hears of an element, but for code. */
export function wordsIn(element: HTMLElement): string[] {
  return [...textsOf(element as unknown as FakeElement)];
}

function* textsOf(element: FakeElement): Generator<string> {
  yield element.title;
  yield* HEARD.map(name => element.attributes.get(name) ?? '');
  for (const child of element.children) {
    if (child instanceof FakeElement) {
      yield* textsOf(child);
    } else {
      yield child.textContent;
    }
  }
}

/** All that was written into an element and what is below it, seen or not: texts, attributes, data and styles. */
export function writtenIn(element: HTMLElement): string[] {
  const root = element as unknown as FakeElement;
  return [root, ...elementsIn(root)].flatMap(({ attributes, children, className, dataset, style }) => [
    className,
    ...children.filter(child => child instanceof FakeText).map(({ textContent }) => textContent),
    ...attributes.values(),
    ...Object.values(dataset).map(String),
    ...Object.values(style).filter(value => typeof value === 'string')
  ]);
}

/** What a panel can ask for, to no effect. */
export const NO_ACTIONS = {
  load: nothing,
  traceCells: nothing,
  simulate: nothing,
  open: nothing,
  hostOf: () => ({}),
  fix: nothing,
  goTo: nothing
};
