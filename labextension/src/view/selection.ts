/**
 * One selection for all views of a trace: picking a finding, an op, a module or a line anywhere lights up the rest everywhere.
 */
import type { IEdit } from '../model/findings';
import { NOTHING_PICKED, pickFinding, pickModule, pickOp, pickSite, type IPicked } from '../model/picks';
import type { IFixShown } from '../model/fixing';
import type { IRepair } from '../model/repairs';
import type { ITrace } from '../model/trace';
import { Listeners } from './disposables';

/** The abilities that the surroundings of a report lend it; a saved page has none. */
export interface IHost {
  /** Take the user to a site. */
  readonly reveal?: (site: number) => void;
  /** Put all edits of a fix into their cells. */
  readonly insert?: (edits: readonly IEdit[]) => void;
  /** Run a cell again and trace it. */
  readonly traceAgain?: (cell: string) => void;
  /** Fix the notebook as far as the cell that shows this report. */
  readonly fixNotebook?: () => void;
  readonly repairs?: IRepairsOfTrace;
  readonly trials?: ITrials;
}

/** The fixes of a trace that are tried, each by a press; `IRepairsOfTrace.subscribe` tells what is new. */
export interface ITrials {
  /** There are cells that can be run again. */
  isPossible(): boolean;
  /** How the trial of a finding's fix goes; null where none was asked for. */
  of(finding: number): IFixShown | null;
  /** What holds is put in without another press. */
  readonly inserts: boolean;
  readonly keepInserting: (on: boolean) => void;
  readonly begin: (finding: number) => void;
  readonly cancel: () => void;
  readonly apply: () => void;
  readonly undo: () => void;
}

/** What became of the fixes of a trace. */
interface IRepairsOfTrace {
  of(finding: number): IRepair | null;
  /** Calls the listener on each change; the result ends that. */
  subscribe(listener: () => void): () => void;
}

export class Selection {
  private _picked = NOTHING_PICKED;

  readonly changed = new Listeners<IPicked>();

  constructor(
    private _trace: ITrace,
    readonly host: IHost = {}
  ) {}

  /** Go on with a longer trace of the same ops. */
  grow(trace: ITrace): void {
    this._trace = trace;
  }

  get picked(): IPicked {
    return this._picked;
  }

  pickFinding(finding: number): void {
    this._set(pickFinding(this._trace, finding));
  }

  pickOp(op: number): void {
    this._set(pickOp(this._trace, op));
  }

  pickModule(module: number): void {
    this._set(pickModule(module));
  }

  pickSite(site: number): void {
    this._set(pickSite(this._trace, site));
  }

  clear(): void {
    this._set(NOTHING_PICKED);
  }

  private _set(picked: IPicked | null): void {
    if (picked !== null) {
      this._picked = picked;
      this.changed.call(picked);
    }
  }
}
