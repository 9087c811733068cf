/**
 * What follows from each thing that happens between the panel and one kernel. Timers, channels and promises are the caller's: `step` only
 * says what is to be done with them.
 */
import { isObject } from './findings';
import { PROTOCOL, readMessage, type ToKernel, type ToPanel } from './messages';
import { sentence } from './words/catalogue';
import {
  isShown,
  UNKNOWN,
  type Effect,
  type Happening,
  type IConnection,
  type IKernel,
  type IPending,
  type IRequest,
  type Kind,
  type Phase
} from './connection';

/** A kernel may keep silent for this many ms before it counts as busy. */
const PATIENCE = 3000;
/** A kernel's status must last this many ms before it is talked to: one that restarts goes through several, more than once. */
const SETTLE = 250;

/** Why a request gets no answer: the kernel has gone, or there was none to ask. */
type Loss = 'kernel.gone' | 'kernel.unreachable';

export function step(state: IConnection, happening: Happening): readonly [IConnection, readonly Effect[]] {
  const turn = new Turn(state);
  const isLate = 'attempt' in happening && happening.attempt !== state.attempt;
  const isOver = state.phase === 'nowhere' && happening.kind !== 'request';
  if (!isLate && !isOver) {
    const transition = TRANSITIONS[happening.kind] as (turn: Turn, happening: Happening) => void;
    transition(turn, happening);
  }
  return [turn.state, turn.effects];
}

/** One step in the making. */
class Turn {
  readonly effects: Effect[] = [];

  constructor(public state: IConnection) {}

  set(changes: Partial<IConnection>): void {
    this.state = { ...this.state, ...changes };
  }

  do(effect: Effect): void {
    this.effects.push(effect);
  }
}

type Transitions = { readonly [K in Kind]: (turn: Turn, happening: Happening<K>) => void };

const TRANSITIONS: Transitions = {
  kernel: (turn, { kernel, isAnother }) => followKernel(turn, kernel, isAnother),
  start,
  load,
  loaded: turn => {
    turn.set({ loading: 'done' });
    retry(turn);
  },
  notLoaded: (turn, { reason }) => {
    turn.set({ loading: 'no', refused: reason });
    reject(turn, reason);
  },
  mentioned: turn => turn.set({ isMentioned: true }),
  timer: followTimer,
  show: (turn, { isVisible }) => {
    turn.set({ isVisible });
    if (turn.state.phase === 'connected') {
      request(turn, { kind: 'show', visible: isVisible });
    }
  },
  request: (turn, { message }) => request(turn, message),
  choices: choose,
  foreign: turn => end(turn, 'foreign'),
  failed: (turn, { reason }) => {
    turn.do({ kind: 'log', text: `the kernel's channel could not be opened: ${reason}` });
    becomeAbsent(turn);
  },
  closed: becomeAbsent,
  received: (turn, { data }) => receive(turn, data),
  disposed: turn => end(turn, 'nowhere')
};

function followKernel(turn: Turn, kernel: IKernel, isAnother: boolean): void {
  const { isUntried, isMentioned, isStarted, kernels } = turn.state;
  turn.set({ kernel });
  if (isAnother) {
    turn.set({ kernels: kernels + 1 });
    drop(turn, 'connecting');
    if (!isUntried) {
      giveUp(turn, 'kernel.gone');
    }
    turn.set({ loading: 'no' });
    connect(turn);
  } else if (kernel.presence === 'restarting' || kernel.presence === 'dead') {
    turn.do({ kind: 'forget' });
    drop(turn, 'connecting');
    giveUp(turn, 'kernel.gone');
    turn.set({ isUntried: true, loading: 'no', kernels: kernels + 1 });
  } else if (kernel.isReady && isUntried) {
    setTimer(turn, 'settle', SETTLE);
  } else if (kernel.isReady && kernel.isIdle && isMentioned) {
    turn.set({ isMentioned: false });
    if (isStarted) {
      retry(turn);
    } else {
      start(turn);
    }
  }
}

function followTimer(turn: Turn): void {
  const { timer, phase } = turn.state;
  if (timer === 'settle') {
    connect(turn);
  } else if (phase === 'connecting') {
    turn.set({ phase: 'busy' });
  }
}

function start(turn: Turn): void {
  if (!turn.state.isStarted) {
    turn.set({ isStarted: true });
    connect(turn);
  }
}

/** Looks for devtrace in the kernel again. */
function retry(turn: Turn): void {
  if (['absent', 'older', 'newer'].includes(turn.state.phase)) {
    connect(turn);
  }
}

function connect(turn: Turn): void {
  const { kernel, isStarted, isVisible } = turn.state;
  if (!isStarted || kernel.presence === 'none' || kernel.presence === 'starting') {
    return;
  }
  if (kernel.isReady) {
    drop(turn, 'connecting');
    const { attempt, nextRequest } = turn.state;
    const hello = { kind: 'hello', request: nextRequest, protocol: PROTOCOL, visible: isVisible } as const;
    turn.set({ isUntried: false, wasVisible: isVisible, nextRequest: nextRequest + 1 });
    turn.do({ kind: 'open', attempt, hello });
  } else {
    turn.set({ isUntried: true }); // The next change of its status leads here again.
  }
  // A kernel in which a cell runs says nothing to a page that is loaded meanwhile, not even its language.
  setTimer(turn, 'patience', PATIENCE);
}

function setTimer(turn: Turn, timer: IConnection['timer'], ms: number | null): void {
  turn.set({ timer });
  turn.do({ kind: 'timer', ms });
}

/** Ends the channel: what the kernel sent is no longer so, and what was sent to the kernel gets no answer. */
function drop(turn: Turn, phase: Phase): void {
  turn.set({ ...UNKNOWN, phase, isFresh: false, attempt: turn.state.attempt + 1 });
  setTimer(turn, null, null);
  turn.do({ kind: 'close' });
  giveUp(turn, 'kernel.gone', ({ isSent }) => isSent);
  turn.set({ chosen: turn.state.pending });
}

/** Ends the channel, and all that waits for one. */
function end(turn: Turn, phase: Phase): void {
  drop(turn, phase);
  giveUp(turn, 'kernel.unreachable');
}

/** There is no devtrace in the kernel: it is loaded, once, for those who asked the kernel for something. */
function becomeAbsent(turn: Turn): void {
  drop(turn, 'absent');
  if (turn.state.requests.length > 0) {
    if (turn.state.loading === 'done') {
      turn.set({ loading: 'no' });
      giveUp(turn, 'kernel.unreachable');
    } else {
      load(turn);
    }
  }
}

function load(turn: Turn): void {
  if (turn.state.loading !== 'running') {
    turn.set({ loading: 'running', refused: '' });
    turn.do({ kind: 'load' });
  }
}

function request(turn: Turn, message: ToKernel): void {
  const { phase, kernel, nextRequest: number, requests } = turn.state;
  const asked = { number, message, isSent: false };
  turn.set({ nextRequest: number + 1, chosen: { ...turn.state.chosen, ...pendingOf([asked]) } });
  setRequests(turn, [...requests, asked]);
  if (isShown(asked)) {
    turn.set({ refused: '' });
  }
  if (phase === 'connected') {
    send(turn);
  } else if (!isShown(asked) || isHopeless(phase, kernel)) {
    giveUp(turn, 'kernel.unreachable', each => each.number === number);
  } else if (phase === 'absent') {
    load(turn);
  } else {
    start(turn);
  }
}

function isHopeless(phase: Phase, { presence }: IKernel): boolean {
  return ['nowhere', 'foreign', 'older', 'newer'].includes(phase) || presence === 'none' || presence === 'dead';
}

/** Sends all requests that wait. */
function send(turn: Turn): void {
  const { requests } = turn.state;
  setRequests(
    turn,
    requests.map(each => ({ ...each, isSent: true }))
  );
  for (const { message, number } of requests.filter(({ isSent }) => !isSent)) {
    turn.do({ kind: 'send', message: { ...message, request: number } });
  }
}

function giveUp(turn: Turn, loss: Loss, which?: (request: IRequest) => boolean): void {
  reject(turn, sentence(turn.state.language, loss), which);
}

function reject(turn: Turn, reason: string, which: (request: IRequest) => boolean = () => true): void {
  const { requests } = turn.state;
  const lost = requests.filter(which);
  if (lost.some(each => each.isSent && isShown(each))) {
    turn.set({ refused: reason });
  }
  setRequests(
    turn,
    requests.filter(each => !lost.includes(each))
  );
  for (const { number } of lost) {
    turn.do({ kind: 'reject', request: number, reason });
  }
}

function setRequests(turn: Turn, requests: readonly IRequest[]): void {
  const pending = pendingOf(requests);
  const isSame = (['tracing', 'simulated'] as const).every(key => pending[key] === turn.state.pending[key]);
  turn.set({ requests, pending: isSame ? turn.state.pending : pending });
}

/** The newest request for each setting. */
function pendingOf(requests: readonly IRequest[]): IPending {
  let pending: IPending = {};
  for (const { message } of requests) {
    if (message.kind === 'trace_cells') {
      pending = { ...pending, tracing: message.on };
    } else if (message.kind === 'simulate') {
      pending = { ...pending, simulated: message.devices };
    }
  }
  return pending;
}

/** Gives a fresh kernel the notebook's settings, but those that the user has changed meanwhile. */
function choose(turn: Turn, { choices, maxOps, tag, explains }: Happening<'choices'>): void {
  const { tracing, simulated } = choices;
  if (turn.state.phase !== 'connected') {
    return;
  }
  const { isFresh, chosen } = turn.state;
  if (tag !== '') {
    request(turn, { kind: 'language', tag });
  }
  request(turn, { kind: 'limit', max_ops: maxOps });
  if (isFresh && !explains) {
    request(turn, { kind: 'explain', on: false });
  }
  if (isFresh && tracing && chosen.tracing === undefined) {
    request(turn, { kind: 'trace_cells', on: true });
  }
  if (isFresh && simulated > 0 && chosen.simulated === undefined) {
    request(turn, { kind: 'simulate', devices: simulated });
  }
}

function receive(turn: Turn, data: unknown): void {
  if (isObject(data) && data['kind'] === 'welcome' && data['protocol'] !== PROTOCOL) {
    refuseOther(turn, data['protocol'], data['version']);
    return;
  }
  const message = readMessage(data);
  if (typeof message === 'string') {
    turn.do({ kind: 'log', text: `refused from the kernel: ${message}` });
  } else if (message.kind === 'update') {
    update(turn, message);
  } else if (message.kind === 'welcome') {
    const { version, folder, fresh } = message;
    turn.set({ phase: 'connected', version, folder, isFresh: fresh, loading: 'no' });
    send(turn);
    if (turn.state.isVisible !== turn.state.wasVisible) {
      request(turn, { kind: 'show', visible: turn.state.isVisible });
    }
    turn.do({ kind: 'greet' });
  } else {
    answer(turn, message);
  }
}

/** Another protocol: of its welcome only the kind, the protocol and the version are sure. */
function refuseOther(turn: Turn, protocol: unknown, version: unknown): void {
  end(turn, typeof protocol === 'number' && protocol > PROTOCOL ? 'newer' : 'older');
  turn.set({ version: typeof version === 'string' ? version.slice(0, 40) : '' });
}

function update(turn: Turn, message: Extract<ToPanel, { kind: 'update' }>): void {
  const { state, live, traces, kept, inventory, fixing } = message;
  const before = turn.state;
  const now = state ?? before.state;
  turn.set({
    state: now,
    live: now?.running ? (live ?? before.live) : null,
    inventory: inventory ?? before.inventory,
    fixing: fixing ?? before.fixing
  });
  if (traces || kept) {
    const known = new Set(before.traces.map(({ trace }) => trace));
    const all = [...before.traces, ...(traces ?? []).filter(({ trace }) => !known.has(trace))];
    turn.set({ traces: kept ? all.filter(({ trace }) => kept.includes(trace)) : all });
  }
}

function answer(turn: Turn, message: Exclude<ToPanel, { kind: 'update' | 'welcome' }>): void {
  const { requests } = turn.state;
  const answered = requests.find(({ number }) => number === message.request);
  if (answered && message.kind === 'refused') {
    reject(turn, message.reason, each => each === answered);
  } else if (answered) {
    setRequests(
      turn,
      requests.filter(each => each !== answered)
    );
    turn.do({ kind: 'answer', request: message.request, message });
  }
}
