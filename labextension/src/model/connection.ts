/**
 * The panel and one kernel, as data: what is known of the kernel, what it was asked for, what can happen, and what is then to be done.
 */
import type { IFixing, IInventory, ILive, IState, ITraced, ToKernel, ToPanel } from './messages';
import type { Language } from './words/catalogue';

/** A kernel as JupyterLab sees it. */
export interface IKernel {
  readonly presence: 'none' | 'starting' | 'running' | 'restarting' | 'dead';
  readonly isReachable: boolean;
  /** Sooner, a message would go to the kernel that is about to end, or wait for the one that starts. */
  readonly isReady: boolean;
  readonly isIdle: boolean;
}

export type Phase = 'nowhere' | 'foreign' | 'connecting' | 'busy' | 'absent' | 'older' | 'newer' | 'connected';

/** From the panel to a kernel. */
export type Link = Phase | 'no-kernel' | 'starting' | 'restarting' | 'disconnected' | 'dead';

/** Settings that the kernel has been asked for and has not answered. */
export interface IPending {
  readonly tracing?: boolean;
  readonly simulated?: number;
}

export interface IRequest {
  readonly number: number;
  readonly message: ToKernel;
  readonly isSent: boolean;
}

/** A notebook's settings for a kernel in which nobody has switched anything. */
export interface IChoices {
  readonly tracing: boolean;
  readonly simulated: number;
}

/** What a kernel has sent. */
interface IKnown {
  /** Of the kernel's devtrace. */
  readonly version: string;
  /** In which the kernel was when devtrace was loaded. */
  readonly folder: string;
  readonly state: IState | null;
  readonly live: ILive | null;
  readonly traces: readonly ITraced[];
  readonly inventory: IInventory | null;
  readonly fixing: IFixing | null;
}

export const UNKNOWN: IKnown = {
  version: '',
  folder: '',
  state: null,
  live: null,
  traces: [],
  inventory: null,
  fixing: null
};

export interface IConnection extends IKnown {
  readonly kernel: IKernel;
  /** Of the panel. */
  readonly language: Language;
  readonly phase: Phase;
  readonly isStarted: boolean;
  /** A kernel counts and lists only for a panel that is visible. */
  readonly isVisible: boolean;
  /** What the kernel was greeted with: a panel may be opened before it answers. */
  readonly wasVisible: boolean;
  /** Code that ran spoke of devtrace, and may have loaded it. */
  readonly isMentioned: boolean;
  /** Nobody has talked to the kernel that there is now. */
  readonly isUntried: boolean;
  /** The kernel's settings were those that it began with when the connection was made. */
  readonly isFresh: boolean;
  /** The settings that this panel has asked for since. */
  readonly chosen: IPending;
  readonly loading: 'no' | 'running' | 'done';
  readonly timer: 'settle' | 'patience' | null;
  /** How many kernels there were: what an earlier one recorded is over. */
  readonly kernels: number;
  /** What comes of an earlier attempt to connect is passed over. */
  readonly attempt: number;
  readonly nextRequest: number;
  readonly requests: readonly IRequest[];
  readonly pending: IPending;
  /** Why the last request was refused, "" when it was not. */
  readonly refused: string;
}

interface IHappenings {
  /** Something about the kernel is new; `isAnother`: the kernel itself is. */
  readonly kernel: { readonly kernel: IKernel; readonly isAnother: boolean };
  readonly start: object;
  readonly load: object;
  readonly loaded: object;
  readonly notLoaded: { readonly reason: string };
  readonly mentioned: object;
  readonly timer: object;
  readonly show: { readonly isVisible: boolean };
  readonly request: { readonly message: ToKernel };
  /** The notebook's choices were found. `tag`: the display language, "" where the user chose none. */
  readonly choices: {
    readonly choices: IChoices;
    readonly maxOps: number;
    readonly tag: string;
    readonly explains: boolean;
  };
  /** The kernel speaks another language than Python. */
  readonly foreign: { readonly attempt: number };
  /** The channel could not be opened. */
  readonly failed: { readonly attempt: number; readonly reason: string };
  readonly closed: { readonly attempt: number };
  readonly received: { readonly attempt: number; readonly data: unknown };
  readonly disposed: object;
}

export type Kind = keyof IHappenings;
export type Happening<K extends Kind = Kind> = { [Each in K]: { readonly kind: Each } & IHappenings[Each] }[K];

export type Effect =
  /** Open a channel with this greeting. */
  | { readonly kind: 'open'; readonly attempt: number; readonly hello: ToKernel & { readonly request: number } }
  | { readonly kind: 'close' }
  /** The channel has ended with its kernel: there is nobody to close it with. */
  | { readonly kind: 'forget' }
  | { readonly kind: 'send'; readonly message: ToKernel & { readonly request: number } }
  | { readonly kind: 'answer'; readonly request: number; readonly message: ToPanel }
  | { readonly kind: 'reject'; readonly request: number; readonly reason: string }
  /** Begin a timer anew; null ends it. */
  | { readonly kind: 'timer'; readonly ms: number | null }
  /** Load devtrace in the kernel. */
  | { readonly kind: 'load' }
  /** Find the notebook's choices for this kernel. */
  | { readonly kind: 'greet' }
  | { readonly kind: 'log'; readonly text: string };

export function unconnected(kernel: IKernel, language: Language = 'en'): IConnection {
  return {
    ...UNKNOWN,
    kernel,
    language,
    phase: 'connecting',
    isStarted: false,
    isVisible: false,
    wasVisible: false,
    isMentioned: false,
    isUntried: true,
    isFresh: false,
    chosen: {},
    loading: 'no',
    timer: null,
    kernels: 0,
    attempt: 0,
    nextRequest: 1,
    requests: [],
    pending: {},
    refused: ''
  };
}

/** A request whose answer the panel shows; it waits for a connection. Any other needs one now. */
export function isShown({ message: { kind } }: IRequest): boolean {
  return ['trace_cells', 'trace_next', 'simulate', 'limit', 'fix', 'cancel_fix'].includes(kind);
}

/** A cell runs, and the kernel answers when that has ended. */
export function isSlow({ phase, kernel, requests }: IConnection): boolean {
  return phase === 'connected' && !kernel.isIdle && requests.some(isShown);
}

/** The numbers of the traces that the kernel has, one without devtrace none; null where it has not said so yet. */
export function keptTraces({ phase, state, traces }: IConnection): readonly number[] | null {
  const numbers = state === null ? null : traces.map(({ trace }) => trace);
  return phase === 'absent' ? [] : numbers;
}

export function linkOf({ kernel, phase }: Pick<IConnection, 'kernel' | 'phase'>): Link {
  switch (kernel.presence) {
    case 'none':
      return 'no-kernel';
    case 'running':
      return phase === 'connected' && !kernel.isReachable ? 'disconnected' : phase;
    default:
      return kernel.presence;
  }
}
