/**
 * What is picked, once for all views of a trace: picking a finding, an op, a module or a line anywhere lights up the rest everywhere.
 */
import type { IEdit } from '../model/findings';
import { moduleOf, type ITrace } from '../model/trace';

/** Ids, -1 for none. */
export interface IPicked {
  readonly finding: number;
  readonly op: number;
  readonly module: number;
  readonly site: number;
}

/** What the surroundings of a report can do for it; absent in a saved page. */
export interface IHost {
  /** Take the user to a site. */
  readonly reveal?: (site: number) => void;
  /** Put an edit into its cell. */
  readonly insert?: (edit: IEdit) => void;
}

const NOTHING: IPicked = { finding: -1, op: -1, module: -1, site: -1 };

export class Selection {
  constructor(
    private _trace: ITrace,
    readonly host: IHost = {}
  ) {}

  /** Goes on with a longer trace of the same ops. */
  grow(trace: ITrace): void {
    this._trace = trace;
  }

  get picked(): IPicked {
    return this._picked;
  }

  pickFinding(index: number): void {
    const finding = this._trace.findings?.[index];
    if (finding) {
      const { op, site } = finding;
      this._set({ finding: index, op, module: op < 0 ? -1 : moduleOf(this._trace, op), site });
    }
  }

  pickOp(op: number): void {
    if (op < 0 || op >= this._trace.ops.length) {
      return;
    }
    const finding = (this._trace.findings ?? []).findIndex(({ ops }) => ops.includes(op));
    this._set({ finding, op, module: moduleOf(this._trace, op), site: this._trace.ops.site[op] });
  }

  pickModule(module: number): void {
    this._set({ ...NOTHING, module });
  }

  pickSite(site: number): void {
    const finding = (this._trace.findings ?? []).findIndex(found => found.site === site);
    if (finding >= 0) {
      this.pickFinding(finding);
    } else {
      this._set({ ...NOTHING, site });
    }
  }

  clear(): void {
    this._set(NOTHING);
  }

  /** Calls the listener on each change; the result ends that. */
  subscribe(listener: (picked: IPicked) => void): () => void {
    this._listeners.add(listener);
    return () => {
      this._listeners.delete(listener);
    };
  }

  private _set(picked: IPicked): void {
    this._picked = picked;
    for (const listener of [...this._listeners]) {
      listener(picked);
    }
  }

  private _picked = NOTHING;
  private readonly _listeners = new Set<(picked: IPicked) => void>();
}
