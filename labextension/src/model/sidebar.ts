/**
 * What the sidebar shows, as one value that is never changed, and the sentence for each state that it can be in.
 */
import type { IConnection, IPending, Link } from './connection';
import type { IEntry } from './entries';
import type { Repairs } from './repairs';

type FromConnection = 'version' | 'state' | 'live' | 'inventory' | 'pending' | 'isSlow' | 'refused';

export interface ISidebar extends Pick<IConnection, FromConnection> {
  /** The notebook or console that is shown. */
  readonly name: string;
  readonly link: Link;
  readonly entries: readonly IEntry[];
  readonly repairs: Repairs;
  /** Keys of the traces with a finding that was fixed. */
  readonly fixed: readonly string[];
}

/** The kernel's settings, as they are when all that was asked for is done. */
export function shownState({ state, pending }: Pick<ISidebar, 'state' | 'pending'>): Required<IPending> {
  return {
    tracing: pending.tracing ?? state?.tracing ?? false,
    simulated: pending.simulated ?? state?.simulated ?? 0
  };
}

export const NOWHERE: ISidebar = {
  name: '',
  link: 'nowhere',
  version: '',
  state: null,
  live: null,
  entries: [],
  repairs: new Map(),
  fixed: [],
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
