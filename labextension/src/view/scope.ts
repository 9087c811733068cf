/**
 * Everything that a view must let go of: one scope per mount, disposed as a whole.
 */
export class Scope {
  /** Adds a listener that goes when the scope does. */
  listen<K extends keyof HTMLElementEventMap>(
    target: EventTarget,
    type: K | `dt-${string}`,
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

  get isDisposed(): boolean {
    return this._ending.signal.aborted;
  }

  readonly dispose = (): void => {
    this._ending.abort();
    for (const dispose of this._disposals.splice(0).reverse()) {
      dispose();
    }
  };

  private readonly _ending = new AbortController();
  private readonly _disposals: Array<() => void> = [];
}
