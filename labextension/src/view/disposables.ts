/**
 * Listeners, observers and elements that end with a view: one collection per mount, disposed as a whole.
 */
export class Disposables {
  private readonly _ending = new AbortController();

  /** Add a listener that goes with all else. */
  listen<K extends keyof HTMLElementEventMap>(
    target: EventTarget,
    type: K,
    listener: (event: HTMLElementEventMap[K]) => void,
    options: AddEventListenerOptions = {}
  ): void {
    target.addEventListener(type, listener as EventListener, { ...options, signal: this._ending.signal });
  }

  add(dispose: () => void): void {
    if (this._ending.signal.aborted) {
      dispose();
    } else {
      this._disposals.push(dispose);
    }
  }

  /** Let an element go from the page with all else. */
  remove(element: Element): void {
    this.add(() => element.remove());
  }

  /** Call `changed` when an element has got a size, and when it gets another. */
  onResize(element: Element, changed: () => void): void {
    const observer = new ResizeObserver(changed);
    observer.observe(element);
    this.add(() => observer.disconnect());
  }

  get isDisposed(): boolean {
    return this._ending.signal.aborted;
  }

  readonly dispose = (): void => {
    this._ending.abort();
    for (const dispose of this._disposals.splice(0).reverse()) {
      dispose();
    }
  };

  private readonly _disposals: Array<() => void> = [];
}

/** Those who want to know of a change. */
export class Listeners<T> {
  private readonly _all = new Set<(value: T) => void>();

  /** Calls the listener on each change, until `disposables` end. */
  add(disposables: Disposables, listener: (value: T) => void): void {
    this._all.add(listener);
    disposables.add(() => this._all.delete(listener));
  }

  call(value: T): void {
    [...this._all].forEach(listener => listener(value));
  }
}
