/**
 * What the sidebar shows, as one value that is never changed, and the sentence for each state that it can be in.
 */
import type { IConnection, IPending, Link } from './connection';
import type { ITrace } from './trace';

/** A trace of this notebook, from a cell's output or out of the kernel's memory. */
export interface IEntry {
  readonly key: string;
  readonly label: string;
  /** The id of the cell that ran, "" when it is not known. */
  readonly cell: string;
  readonly seconds: number;
  readonly ops: number;
  /** Findings, ledger, sites and sources; its ops may have been left away. */
  readonly outline: ITrace;
  /** What the kernel knows it by, -1 when it does not. */
  readonly number: number;
}

type FromConnection = 'version' | 'state' | 'live' | 'inventory' | 'pending' | 'isSlow' | 'refused';

export interface ISidebar extends Pick<IConnection, FromConnection> {
  /** The notebook or console that is shown. */
  readonly name: string;
  readonly link: Link;
  readonly entries: readonly IEntry[];
}

/** The kernel's settings, as they are when all that was asked for is done. */
export function shownState({ state, pending }: Pick<ISidebar, 'state' | 'pending'>): Required<IPending> {
  return {
    tracing: pending.tracing ?? state?.tracing ?? false,
    simulated: pending.simulated ?? state?.simulated ?? 0
  };
}

/** The traces that the last run of their cell left; of what came before them the user has moved on. */
export function latest(entries: readonly IEntry[]): readonly IEntry[] {
  const last = new Map(entries.map(entry => [entry.cell, entry]));
  return entries.filter(entry => entry.cell === '' || last.get(entry.cell) === entry);
}

export const NOWHERE: ISidebar = {
  name: '',
  link: 'nowhere',
  version: '',
  state: null,
  live: null,
  entries: [],
  inventory: null,
  pending: {},
  isSlow: false,
  refused: ''
};

const SENTENCES: Readonly<Record<Link, string>> = {
  nowhere: 'Open a notebook or a console: this panel shows what its cells do on which device.',
  'no-kernel': 'This notebook has no kernel. The traces that it holds are shown below.',
  starting: 'The kernel is starting.',
  restarting: 'The kernel is restarting: what it knew is gone, the traces in the outputs stay.',
  disconnected: 'The connection to the kernel is lost. The panel goes on when it is back.',
  dead: 'The kernel has died. Restart it to go on.',
  foreign: 'devtrace works in Python kernels; this one runs another language.',
  connecting: 'Looking for devtrace in the kernel.',
  busy: 'The kernel does not answer: it is starting, or a cell runs. The panel connects when it is free.',
  absent: 'devtrace is not loaded in this kernel.',
  older: 'The kernel has an older devtrace than this panel. Update it there: pip install -U devtrace',
  newer:
    'The kernel has a newer devtrace than this panel. Update it in the environment of JupyterLab, and reload the page.',
  connected: ''
};

export function sentence({ link, version }: ISidebar): string {
  const known = (link === 'older' || link === 'newer') && version !== '';
  return known ? `${SENTENCES[link]} (It is ${version}.)` : SENTENCES[link];
}
