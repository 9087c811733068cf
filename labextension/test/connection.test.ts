import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isSlow,
  keptTraces,
  linkOf,
  unconnected,
  type Effect,
  type Happening,
  type IConnection,
  type IKernel
} from '../src/model/connection';
import type { ToKernel } from '../src/model/messages';
import { shownState } from '../src/model/sidebar';
import { step } from '../src/model/transitions';

const IDLE: IKernel = { presence: 'running', isReachable: true, isReady: true, isIdle: true };
const BUSY: IKernel = { ...IDLE, isIdle: false };
const RESTARTING: IKernel = { presence: 'restarting', isReachable: true, isReady: false, isIdle: false };
const NONE: IKernel = { presence: 'none', isReachable: false, isReady: false, isIdle: false };
const STATE = { tracing: false, simulated: 0, max_ops: 5, running: false };
const ON: ToKernel = { kind: 'trace_cells', on: true };
const OFF: ToKernel = { kind: 'trace_cells', on: false };

/** A connection, and what it had its owner do. */
class Driven {
  state: IConnection;
  effects: Effect[] = [];

  constructor(kernel = IDLE) {
    this.state = unconnected(kernel);
  }

  /** One whose kernel has answered and sent its state. */
  static connected(fresh = false): Driven {
    const driven = new Driven();
    driven.follow({ kind: 'start' });
    driven.welcome(fresh);
    driven.receive({ kind: 'update', state: STATE });
    driven.effects = [];
    return driven;
  }

  follow(happening: Happening): void {
    const [state, effects] = step(this.state, happening);
    this.state = state;
    this.effects.push(...effects);
  }

  kernel(kernel: IKernel, isAnother = false): void {
    this.follow({ kind: 'kernel', kernel, isAnother });
  }

  receive(data: unknown): void {
    this.follow({ kind: 'received', attempt: this.state.attempt, data });
  }

  welcome(fresh = false): void {
    this.receive({ kind: 'welcome', request: 1, protocol: 1, version: '1', folder: '/', fresh });
  }

  close(): void {
    this.follow({ kind: 'closed', attempt: this.state.attempt });
  }

  /** Asks the kernel, and gives the request's number. */
  ask(message: ToKernel): number {
    const { nextRequest } = this.state;
    this.follow({ kind: 'request', message });
    return nextRequest;
  }

  of<K extends Effect['kind']>(kind: K): Array<Extract<Effect, { kind: K }>> {
    return this.effects.filter((effect): effect is Extract<Effect, { kind: K }> => effect.kind === kind);
  }

  get sent(): string[] {
    return this.of('send').map(({ message }) => message.kind);
  }

  get isTracing(): boolean {
    return shownState(this.state).tracing;
  }

  get link(): string {
    return linkOf(this.state);
  }
}

test('a connection that is started greets the kernel and is connected when it is welcomed', () => {
  const driven = new Driven();
  assert.equal(driven.of('open').length, 0);
  driven.follow({ kind: 'start' });
  assert.deepEqual(driven.of('open')[0].hello, { kind: 'hello', request: 1, protocol: 1, visible: false });
  assert.equal(driven.link, 'connecting');
  driven.welcome();
  assert.equal(driven.link, 'connected');
  assert.equal(driven.of('greet').length, 1);
});

test('a kernel that keeps silent counts as busy until it answers', () => {
  const driven = new Driven(BUSY);
  driven.follow({ kind: 'start' });
  driven.follow({ kind: 'timer' });
  assert.equal(driven.link, 'busy');
  driven.welcome();
  assert.equal(driven.link, 'connected');
});

test('a kernel that is not ready is talked to when its status has settled', () => {
  const driven = new Driven({ ...IDLE, isReady: false });
  driven.follow({ kind: 'start' });
  assert.equal(driven.of('open').length, 0);
  driven.kernel(BUSY);
  driven.kernel(IDLE);
  assert.equal(driven.of('open').length, 0);
  driven.follow({ kind: 'timer' });
  assert.equal(driven.of('open').length, 1);
});

test('a kernel without devtrace has no trace, one that has not answered may have any', () => {
  const driven = Driven.connected();
  assert.deepEqual(keptTraces(driven.state), []);
  driven.receive({ kind: 'update', kept: [], traces: [] });
  const { kernels } = driven.state;
  driven.kernel(RESTARTING);
  assert.equal(keptTraces(driven.state), null);
  assert.equal(driven.state.kernels, kernels + 1);
  driven.kernel(IDLE);
  driven.follow({ kind: 'timer' });
  driven.close();
  assert.deepEqual(keptTraces(driven.state), []);
  assert.equal(driven.state.kernels, kernels + 1, 'an attempt to connect makes no other kernel');
});

test('code that mentions devtrace makes the connection look again when the kernel is idle', () => {
  const driven = new Driven();
  driven.follow({ kind: 'start' });
  driven.close();
  assert.equal(driven.link, 'absent');
  driven.follow({ kind: 'mentioned' });
  driven.kernel(BUSY);
  assert.equal(driven.of('open').length, 1);
  driven.kernel(IDLE);
  assert.equal(driven.of('open').length, 2);
});

test('what comes of an earlier attempt is passed over', () => {
  const driven = Driven.connected();
  const { attempt } = driven.state;
  driven.kernel(IDLE, true);
  driven.follow({ kind: 'received', attempt, data: { kind: 'update', state: { ...STATE, tracing: true } } });
  driven.follow({ kind: 'closed', attempt });
  assert.equal(driven.link, 'connecting');
  assert.equal(driven.state.state, null);
});

for (const [protocol, link] of [
  [99, 'newer'],
  [0, 'older']
] as const) {
  test(`a kernel that speaks protocol ${protocol} is ${link}`, () => {
    const driven = new Driven();
    driven.follow({ kind: 'start' });
    driven.receive({ kind: 'welcome', protocol, version: '9.9', mood: 'fine' });
    assert.deepEqual([driven.link, driven.state.version], [link, '9.9']);
  });
}

test('a message that does not fit is logged in one line and changes nothing', () => {
  const driven = Driven.connected();
  const before = driven.state;
  driven.receive({ kind: 'update', state: 'on' });
  assert.deepEqual(
    driven.of('log').map(({ text }) => text),
    ['refused from the kernel: update.state is "on", expected an object']
  );
  assert.equal(driven.state.state, before.state);
});

test('a setting is shown as it was asked for until the kernel has answered', () => {
  const driven = Driven.connected();
  const request = driven.ask(ON);
  assert.equal(driven.isTracing, true);
  driven.receive({ kind: 'update', state: STATE }); // on its way when the user pressed
  assert.equal(driven.isTracing, true);
  driven.receive({ kind: 'update', state: { ...STATE, tracing: true } });
  driven.receive({ kind: 'done', request });
  assert.equal(driven.isTracing, true);
  assert.deepEqual(driven.state.pending, {});
  assert.equal(driven.of('answer').length, 1);
});

test('a setting that is refused is shown as it was, with the reason', () => {
  const driven = Driven.connected();
  const request = driven.ask({ kind: 'simulate', devices: 99 });
  assert.equal(shownState(driven.state).simulated, 99);
  driven.receive({ kind: 'refused', request, reason: 'too many' });
  assert.equal(shownState(driven.state).simulated, 0);
  assert.equal(driven.state.refused, 'too many');
  assert.deepEqual(driven.of('reject'), [{ kind: 'reject', request, reason: 'too many' }]);
  driven.ask(ON);
  assert.equal(driven.state.refused, '');
});

test('of several presses the last counts, whichever is answered', () => {
  const driven = Driven.connected();
  const requests = [ON, OFF, ON].map(message => driven.ask(message));
  for (const request of requests) {
    assert.equal(driven.isTracing, true);
    driven.receive({ kind: 'update', state: { ...STATE, tracing: true } });
    driven.receive({ kind: 'done', request });
  }
  assert.equal(driven.isTracing, true);
});

test('a press before the welcome is sent with it, however long the kernel is busy', () => {
  const driven = new Driven(BUSY);
  driven.ask(ON);
  driven.follow({ kind: 'timer' });
  assert.equal(driven.link, 'busy');
  assert.deepEqual([driven.sent, driven.isTracing], [[], true]);
  driven.welcome();
  assert.deepEqual([driven.sent, driven.isTracing], [['trace_cells'], true]);
});

test('a panel that is opened before the welcome is visible to the kernel after it', () => {
  const driven = new Driven(BUSY);
  driven.follow({ kind: 'start' });
  driven.kernel(IDLE);
  driven.follow({ kind: 'timer' });
  driven.follow({ kind: 'show', isVisible: true });
  const hello = driven.of('open').at(-1)?.hello;
  assert(hello?.kind === 'hello' && !hello.visible);
  driven.welcome();
  assert.deepEqual(
    driven.of('send').map(({ message }) => message),
    [{ kind: 'show', visible: true, request: 2 }]
  );
});

test('a press while there is no kernel yet waits for one', () => {
  const driven = new Driven({ ...NONE, presence: 'starting' });
  driven.ask(ON);
  driven.kernel(IDLE, true);
  driven.welcome();
  assert.deepEqual(driven.sent, ['trace_cells']);
});

test('a press while the channel is opened again is sent when it is open', () => {
  const driven = Driven.connected();
  driven.close();
  driven.follow({ kind: 'mentioned' });
  driven.kernel(IDLE);
  driven.ask(ON);
  driven.welcome();
  assert.deepEqual(driven.sent, ['trace_cells']);
  assert.equal(driven.isTracing, true);
});

test('a press where devtrace is not loaded loads it, once', () => {
  const driven = new Driven();
  driven.follow({ kind: 'start' });
  driven.close();
  driven.ask(ON);
  driven.ask({ kind: 'trace_next', cell: 'a' });
  assert.equal(driven.of('load').length, 1);
  driven.follow({ kind: 'loaded' });
  driven.welcome();
  assert.deepEqual(driven.sent, ['trace_cells', 'trace_next']);
});

test('a press where devtrace cannot be loaded is given up with the reason', () => {
  const driven = new Driven();
  const request = driven.ask(ON);
  driven.close();
  assert.equal(driven.of('load').length, 1);
  driven.follow({ kind: 'notLoaded', reason: 'not installed' });
  assert.deepEqual(driven.of('reject'), [{ kind: 'reject', request, reason: 'not installed' }]);
  assert.deepEqual([driven.isTracing, driven.state.refused], [false, 'not installed']);
});

test('a kernel that has no devtrace after it was loaded is not asked forever', () => {
  const driven = new Driven();
  driven.ask(ON);
  driven.close();
  driven.follow({ kind: 'loaded' });
  driven.close();
  assert.equal(driven.of('load').length, 1);
  assert.equal(driven.of('reject').length, 1);
});

test('a press that a restart overtakes is refused, and the next kernel is given the choices that were kept', () => {
  const driven = Driven.connected();
  driven.ask(ON);
  driven.kernel(RESTARTING);
  assert.deepEqual([driven.link, driven.of('reject').length], ['restarting', 1]);
  assert.match(driven.state.refused, /has gone before it answered/);
  driven.effects = [];
  driven.kernel(IDLE);
  driven.follow({ kind: 'timer' });
  driven.welcome(true);
  driven.follow({ kind: 'choices', choices: { tracing: true, simulated: 2 }, maxOps: 7, tag: '', explains: true });
  assert.deepEqual(driven.sent, ['limit', 'trace_cells', 'simulate']);
});

test('the choices of a notebook do not undo a press that came while they were read', () => {
  const driven = Driven.connected(true);
  const request = driven.ask(OFF);
  driven.receive({ kind: 'done', request });
  driven.follow({ kind: 'choices', choices: { tracing: true, simulated: 2 }, maxOps: 7, tag: '', explains: true });
  assert.deepEqual(driven.sent, ['trace_cells', 'limit', 'simulate']);
});

test('a kernel in which somebody has switched something keeps its settings', () => {
  const driven = Driven.connected(false);
  driven.follow({ kind: 'choices', choices: { tracing: true, simulated: 2 }, maxOps: 7, tag: '', explains: true });
  assert.deepEqual(driven.sent, ['limit']);
});

test('a fresh kernel explains no errors if the setting says so', () => {
  const choices = { choices: { tracing: false, simulated: 0 }, maxOps: 7, tag: '', explains: false };
  const fresh = Driven.connected(true);
  fresh.follow({ kind: 'choices', ...choices });
  assert.deepEqual(fresh.sent, ['limit', 'explain']);
  const used = Driven.connected(false);
  used.follow({ kind: 'choices', ...choices });
  assert.deepEqual(used.sent, ['limit']);
});

test('the panel says that it waits for a running cell, and no longer when there is an answer', () => {
  const driven = Driven.connected();
  const request = driven.ask(ON);
  assert.equal(isSlow(driven.state), false);
  driven.kernel(BUSY);
  assert.equal(isSlow(driven.state), true);
  driven.receive({ kind: 'done', request });
  assert.equal(isSlow(driven.state), false);
});

test('without a kernel nothing is asked for, and a trace is fetched over a connection only', () => {
  for (const [driven, message] of [
    [new Driven(NONE), ON],
    [new Driven(), { kind: 'fetch', trace: 1 }]
  ] as Array<[Driven, ToKernel]>) {
    driven.ask(message);
    assert.equal(driven.of('reject').length, 1);
    assert.equal(driven.of('load').length + driven.of('open').length, 0);
  }
});

test('the traces that the kernel sent are those that it keeps', () => {
  const driven = Driven.connected();
  const traced = (trace: number): object => ({ trace, label: '', cell: '', seconds: 0, ops: 0, outline: {} });
  driven.receive({ kind: 'update', traces: [traced(1), traced(2)], kept: [1, 2] });
  driven.receive({ kind: 'update', traces: [traced(2), traced(3)], kept: [2, 3] });
  assert.deepEqual(
    driven.state.traces.map(({ trace }) => trace),
    [2, 3]
  );
});

test('a connection that is lost is said, and the kernel is still known', () => {
  const driven = Driven.connected();
  driven.kernel({ ...IDLE, isReachable: false, isReady: false });
  assert.deepEqual([driven.link, driven.state.state], ['disconnected', STATE]);
  driven.kernel(IDLE);
  assert.equal(driven.link, 'connected');
});

test('a connection that is disposed closes its channel and follows nothing more', () => {
  const driven = Driven.connected();
  driven.follow({ kind: 'disposed' });
  assert.equal(driven.of('close').length, 1);
  driven.effects = [];
  driven.kernel(IDLE, true);
  assert.deepEqual(driven.effects, []);
  driven.ask(ON);
  assert.equal(driven.of('reject').length, 1);
});
