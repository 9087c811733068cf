/**
 * The connection of a notebook or console to its kernel: tells `step` what happens, and does what `step` says.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { Signal, type ISignal } from '@lumino/signaling';
import {
  linkOf,
  unconnected,
  type Effect,
  type Happening,
  type IChoices,
  type IConnection,
  type IKernel,
  type Link
} from '../model/connection';
import type { ToKernel, ToPanel } from '../model/messages';
import { MIME_TYPE } from '../model/trace';
import { sentence, type Language } from '../model/words/catalogue';
import { step } from '../model/transitions';
import { openChannel, type IChannel } from './channel';

interface IWaiting {
  resolve(message: ToPanel): void;
  reject(reason: Error): void;
}

export class Connection {
  private _state: IConnection;
  private _channel: IChannel | null = null;
  private _timer = 0;
  private readonly _waiting = new Map<number, IWaiting>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _greeted = new Signal<this, void>(this);

  constructor(
    private readonly _context: ISessionContext,
    language: Language
  ) {
    this._state = unconnected(kernelOf(_context), language);
    _context.kernelChanged.connect(() => {
      this._follow({ kind: 'kernel', kernel: kernelOf(_context), isAnother: true });
    });
    _context.statusChanged.connect(this._onStatus);
    _context.connectionStatusChanged.connect(this._onStatus);
    _context.iopubMessage.connect(this._onIopub);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when a kernel has answered for the first time, and is to be given the notebook's choices. */
  get greeted(): ISignal<this, void> {
    return this._greeted;
  }

  get state(): IConnection {
    return this._state;
  }

  get link(): Link {
    return linkOf({ phase: this._state.phase, kernel: kernelOf(this._context) });
  }

  /** Begins to talk to the kernel; from here on the connection looks after itself. */
  start(): void {
    this._follow({ kind: 'start' });
  }

  /** Loads devtrace in the kernel. */
  load(): void {
    this._follow({ kind: 'load' });
  }

  show(isVisible: boolean): void {
    if (isVisible !== this._state.isVisible) {
      this._follow({ kind: 'show', isVisible });
    }
  }

  /** `tag`: the display language, "" where the user chose none. */
  choose(choices: IChoices, maxOps: number, tag: string, explains: boolean): void {
    this._follow({ kind: 'choices', choices, maxOps, tag, explains });
  }

  /** Gives the kernel's answer to a message; refused ones reject with the kernel's reason. */
  ask(message: ToKernel): Promise<ToPanel> {
    return new Promise((resolve, reject) => {
      this._waiting.set(this._state.nextRequest, { resolve, reject });
      this._follow({ kind: 'request', message });
    });
  }

  dispose(): void {
    this._follow({ kind: 'disposed' });
    Signal.clearData(this);
  }

  private readonly _onStatus = (): void => {
    this._follow({ kind: 'kernel', kernel: kernelOf(this._context), isAnother: false });
  };

  /** Code that mentions devtrace may have loaded it. */
  private readonly _onIopub = (_: unknown, message: KernelMessage.IMessage): void => {
    const isMentioned = KernelMessage.isExecuteInputMsg(message)
      ? String((message.content as { code?: unknown }).code).includes('devtrace')
      : KernelMessage.isDisplayDataMsg(message) && MIME_TYPE in ((message.content as { data?: object }).data ?? {});
    if (isMentioned) {
      this._follow({ kind: 'mentioned' });
    }
  };

  private _follow(happening: Happening): void {
    const [state, effects] = step(this._state, happening);
    this._state = state;
    effects.forEach(this._do);
    this._changed.emit();
  }

  private readonly _do = (effect: Effect): void => {
    switch (effect.kind) {
      case 'open':
        void this._open(effect);
        break;
      case 'close':
        this._close();
        break;
      case 'forget':
        this._channel = null;
        break;
      case 'send':
        this._send(effect.message);
        break;
      case 'answer':
        this._settle(effect.request)?.resolve(effect.message);
        break;
      case 'reject':
        this._settle(effect.request)?.reject(new Error(effect.reason));
        break;
      case 'timer':
        this._setTimer(effect.ms);
        break;
      case 'load':
        void this._load();
        break;
      case 'greet':
        this._greeted.emit();
        break;
      case 'log':
        console.error(`devtrace: ${effect.text}`);
    }
  };

  private async _open({ attempt, hello }: Extract<Effect, { kind: 'open' }>): Promise<void> {
    const kernel = this._context.session?.kernel;
    const isCurrent = (): boolean => attempt === this._state.attempt;
    try {
      const info = await kernel?.info;
      if (!kernel || info?.language_info.name !== 'python') {
        this._follow({ kind: 'foreign', attempt });
      } else if (isCurrent()) {
        const channel = await openChannel(kernel, hello, {
          received: data => {
            this._follow({ kind: 'received', attempt, data });
          },
          closed: () => {
            this._follow({ kind: 'closed', attempt });
          }
        });
        if (isCurrent()) {
          this._channel = channel;
        } else {
          channel.dispose();
        }
      }
    } catch (error) {
      this._follow({ kind: 'failed', attempt, reason: String(error) });
    }
  }

  private _send(message: ToKernel & { readonly request: number }): void {
    try {
      this._channel?.send(message);
    } catch (error) {
      const data = { kind: 'refused', request: message.request, reason: String(error) };
      this._follow({ kind: 'received', attempt: this._state.attempt, data });
    }
  }

  private _close(): void {
    const channel = this._channel;
    this._channel = null;
    try {
      channel?.dispose();
    } catch {
      // The connection under it is gone already.
    }
  }

  private _settle(request: number): IWaiting | undefined {
    const waiting = this._waiting.get(request);
    this._waiting.delete(request);
    return waiting;
  }

  private _setTimer(ms: number | null): void {
    window.clearTimeout(this._timer);
    if (ms !== null) {
      this._timer = window.setTimeout(() => {
        this._follow({ kind: 'timer' });
      }, ms);
    }
  }

  private async _load(): Promise<void> {
    const reason = await loadIn(this._state.language, this._context.session?.kernel);
    this._follow(reason === null ? { kind: 'loaded' } : { kind: 'notLoaded', reason });
  }
}

function kernelOf(context: ISessionContext): IKernel {
  const kernel = context.session?.kernel;
  const isReachable = kernel?.connectionStatus === 'connected';
  const isAwake = kernel?.status === 'idle' || kernel?.status === 'busy';
  return {
    presence: kernel ? presenceOf(kernel) : context.isReady || context.hasNoKernel ? 'none' : 'starting',
    isReachable,
    isReady: !context.isRestarting && isReachable && isAwake,
    isIdle: kernel?.status === 'idle'
  };
}

function presenceOf({ status }: Kernel.IKernelConnection): IKernel['presence'] {
  return status === 'dead' ? 'dead' : status === 'restarting' || status === 'autorestarting' ? 'restarting' : 'running';
}

/** Loads devtrace in a kernel; why that failed, null where it did not. */
async function loadIn(language: Language, kernel: Kernel.IKernelConnection | null | undefined): Promise<string | null> {
  if (!kernel) {
    return '';
  }
  const code = '%load_ext devtrace';
  try {
    const { content } = await kernel.requestExecute({ code, store_history: false, stop_on_error: false }).done;
    if (content.status !== 'error') {
      return null;
    }
    const { ename = 'Error', evalue = '' } = content as { ename?: string; evalue?: string };
    return ename === 'ModuleNotFoundError' && evalue.includes("'devtrace'")
      ? sentence(language, 'kernel.not-installed')
      : `${ename}: ${evalue}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
