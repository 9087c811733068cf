/**
 * What the sidebar shows, as one value that is never changed, and the sentence for each state that it can be in.
 */
import type { IConnection, IPending, Link } from './connection';
import type { IEntry } from './entries';
import type { IFixShown } from './fixing';
import type { Repairs } from './repairs';
import { sentence, type Language } from './words/catalogue';

type FromConnection = 'version' | 'state' | 'live' | 'inventory' | 'pending' | 'refused';

export interface ISidebar extends Pick<IConnection, FromConnection> {
  /** The notebook or console that is shown. */
  readonly name: string;
  readonly link: Link;
  /** The kernel answers when the running cell has ended. */
  readonly isSlow: boolean;
  readonly entries: readonly IEntry[];
  readonly repairs: Repairs;
  /** Keys of the traces with a finding that was fixed. */
  readonly fixed: readonly string[];
  /** It is a notebook, whose cells can be fixed as a whole. */
  readonly hasCells: boolean;
  /** The notebook's fix; null where none was asked for. */
  readonly fix: IFixShown | null;
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
  hasCells: false,
  fix: null,
  inventory: null,
  pending: {},
  isSlow: false,
  refused: ''
};

const LINKS = {
  nowhere: 'link.nowhere',
  'no-kernel': 'link.no-kernel',
  starting: 'link.starting',
  restarting: 'link.restarting',
  disconnected: 'link.disconnected',
  dead: 'link.dead',
  foreign: 'link.foreign',
  connecting: 'link.connecting',
  busy: 'link.busy',
  absent: 'link.absent',
  older: 'link.older',
  newer: 'link.newer'
} as const;

export function linkSentence(language: Language, { link, version }: ISidebar): string {
  const text = link === 'connected' ? '' : sentence(language, LINKS[link]);
  const isKnown = (link === 'older' || link === 'newer') && version !== '';
  return isKnown ? sentence(language, 'link.version', { sentence: text, version }) : text;
}
