/**
 * What stands between the panel and one kernel: opens the channel when there is a kernel that knows devtrace, keeps what it said, and
 * begins anew when the kernel restarts, is changed, or loads devtrace later.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { Signal, type ISignal } from '@lumino/signaling';
import { isObject } from '../model/findings';
import {
  PROTOCOL,
  readMessage,
  type IInventory,
  type ILive,
  type IState,
  type ITraced,
  type ToKernel,
  type ToPanel
} from '../model/messages';
import type { Link } from '../model/sidebar';
import { MIME_TYPE } from '../model/trace';
import { openChannel, type IChannel } from './channel';

/** How long a kernel may keep silent before it counts as busy, in ms. */
const PATIENCE = 3000;
/** How long a kernel's state must last before it is talked to, in ms. */
const SETTLE = 250;

interface IWaiting {
  resolve(message: ToPanel): void;
  reject(reason: Error): void;
}

export class Connection {
  constructor(private readonly _context: ISessionContext) {
    _context.kernelChanged.connect(this._restart);
    _context.statusChanged.connect(this._onStatus);
    _context.connectionStatusChanged.connect(this._onStatus);
    _context.iopubMessage.connect(this._onIopub);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when a kernel has answered for the first time; the argument says whether nobody has set anything in it. */
  get greeted(): ISignal<this, boolean> {
    return this._greeted;
  }

  get link(): Link {
    const { session } = this._context;
    const kernel = session?.kernel;
    if (!kernel) {
      return this._context.isReady || this._context.hasNoKernel ? 'no-kernel' : 'starting';
    }
    if (kernel.status === 'restarting' || kernel.status === 'autorestarting' || kernel.status === 'dead') {
      return kernel.status === 'dead' ? 'dead' : 'restarting';
    }
    if (kernel.connectionStatus !== 'connected' && this._link === 'connected') {
      return 'disconnected';
    }
    return this._link;
  }

  version = '';
  /** The folder in which the kernel was when devtrace was loaded. */
  folder = '';
  state: IState | null = null;
  live: ILive | null = null;
  traced: readonly ITraced[] = [];
  inventory: IInventory | null = null;

  /** Whether somebody looks: the kernel counts and lists only then. */
  get visible(): boolean {
    return this._visible;
  }

  set visible(visible: boolean) {
    if (visible !== this._visible) {
      this._visible = visible;
      if (this._link === 'connected') {
        void this.ask({ kind: 'show', visible }).catch(() => undefined);
      }
    }
  }

  /** Begin to talk to the kernel; from here on the connection looks after itself. */
  start(): void {
    if (!this._started) {
      this._started = true;
      this._connect();
    }
  }

  /** Look for devtrace in the kernel again. */
  retry(): void {
    if (this._link === 'absent' || this._link === 'older' || this._link === 'newer') {
      this._connect();
    }
  }

  /** Sends a message and gives the kernel's answer to it; refused ones reject with the kernel's reason. */
  ask(message: ToKernel): Promise<ToPanel> {
    const channel = this._channel;
    if (!channel) {
      return Promise.reject(new Error('There is no connection to devtrace in a kernel.'));
    }
    const request = this._next++;
    return new Promise((resolve, reject) => {
      this._waiting.set(request, { resolve, reject });
      channel.send({ ...message, request });
    });
  }

  /** What the kernel has said yes to is so; its next update says the same. */
  assume(state: Partial<IState>): void {
    this.state = this.state && { ...this.state, ...state };
  }

  dispose(): void {
    this._disposed = true;
    this._drop('nowhere');
    Signal.clearData(this);
  }

  private readonly _restart = (): void => {
    this._drop('connecting');
    if (this._started) {
      this._connect();
    }
    this._changed.emit();
  };

  private readonly _onStatus = (): void => {
    const kernel = this._context.session?.kernel;
    if (kernel?.status === 'restarting' || kernel?.status === 'autorestarting' || kernel?.status === 'dead') {
      this._channel = null; // It ends with the kernel, which is not to be talked to any more.
      this._drop('connecting');
      this._unmet = true;
    } else if (kernel && this._isReady(kernel)) {
      if (this._unmet) {
        this._connectSoon();
      } else if (kernel.status === 'idle' && this._mentioned) {
        this._mentioned = false;
        this.start();
        this.retry();
      }
    }
    this._changed.emit();
  };

  /** Code that mentions devtrace may have loaded it. */
  private readonly _onIopub = (_: unknown, message: KernelMessage.IMessage): void => {
    if (KernelMessage.isExecuteInputMsg(message)) {
      this._mentioned ||= String((message.content as { code?: unknown }).code).includes('devtrace');
    } else if (KernelMessage.isDisplayDataMsg(message)) {
      this._mentioned ||= MIME_TYPE in ((message.content as { data?: object }).data ?? {});
    }
  };

  /** A kernel that restarts goes through several states more than once. */
  private _connectSoon(): void {
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      this._connect();
    }, SETTLE);
  }

  private _connect(): void {
    const kernel = this._context.session?.kernel;
    if (!kernel || !this._started || this._disposed) {
      return;
    }
    this._unmet = !this._isReady(kernel);
    if (this._unmet) {
      this._awaitAnswer(); // The next change of its status leads here again.
      return;
    }
    this._drop('connecting');
    const turn = ++this._turn;
    this._awaitAnswer();
    void this._open(kernel, turn).catch((error: unknown) => {
      if (turn === this._turn) {
        console.error(`devtrace: the kernel's channel could not be opened: ${String(error)}`);
        this._drop('absent');
        this._changed.emit();
      }
    });
  }

  private async _open(kernel: Kernel.IKernelConnection, turn: number): Promise<void> {
    const info = await kernel.info;
    if (turn !== this._turn) {
      return;
    }
    if (info.language_info.name !== 'python') {
      this._drop('foreign');
      this._changed.emit();
      return;
    }
    const hello = { kind: 'hello', request: this._next++, protocol: PROTOCOL, visible: this._visible };
    const mine = (): boolean => turn === this._turn;
    const channel = await openChannel(kernel, hello, {
      received: data => {
        if (mine()) {
          this._receive(data);
        }
      },
      closed: () => {
        if (mine()) {
          this._drop('absent');
          this._changed.emit();
        }
      }
    });
    if (!mine()) {
      channel.dispose();
      return;
    }
    this._channel = channel;
  }

  /** A kernel in which a cell runs says nothing to a page that is loaded meanwhile, not even what language it speaks. */
  private _awaitAnswer(): void {
    const turn = this._turn;
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      if (turn === this._turn && this._link === 'connecting') {
        this._link = 'busy';
        this._changed.emit();
      }
    }, PATIENCE);
  }

  private _receive(data: unknown): void {
    if (isObject(data) && data['kind'] === 'welcome' && data['protocol'] !== PROTOCOL) {
      this._meetOther(data);
      return;
    }
    const message = readMessage(data);
    if (typeof message === 'string') {
      console.error(`devtrace: refused from the kernel: ${message}`);
      return;
    }
    if (message.kind === 'update') {
      this._update(message);
    } else if (message.kind === 'welcome') {
      this._link = 'connected';
      this.version = message.version;
      this.folder = message.folder;
      this._greeted.emit(message.fresh);
    } else {
      const waiting = this._waiting.get(message.request);
      this._waiting.delete(message.request);
      if (message.kind === 'refused') {
        waiting?.reject(new Error(message.reason));
      } else {
        waiting?.resolve(message);
      }
    }
    this._changed.emit();
  }

  /** A devtrace that speaks another protocol: of its welcome only the kind, the protocol and the version are sure. */
  private _meetOther({ protocol, version }: Record<string, unknown>): void {
    this._drop(typeof protocol === 'number' && protocol > PROTOCOL ? 'newer' : 'older');
    this.version = typeof version === 'string' ? version.slice(0, 40) : '';
    this._changed.emit();
  }

  private _update({ state, live, traces, kept, inventory }: Extract<ToPanel, { kind: 'update' }>): void {
    this.state = state ?? this.state;
    this.live = this.state?.running ? (live ?? this.live) : null;
    this.inventory = inventory ?? this.inventory;
    if (traces || kept) {
      const known = new Set(this.traced.map(({ trace }) => trace));
      const all = [...this.traced, ...(traces ?? []).filter(({ trace }) => !known.has(trace))];
      this.traced = kept ? all.filter(({ trace }) => kept.includes(trace)) : all;
    }
  }

  /** Sooner, a message would go to the kernel that is about to end, or wait for the one that starts. */
  private _isReady({ status, connectionStatus }: Kernel.IKernelConnection): boolean {
    return !this._context.isRestarting && connectionStatus === 'connected' && (status === 'idle' || status === 'busy');
  }

  private _drop(link: Link): void {
    this._turn++;
    window.clearTimeout(this._timer);
    this._link = link;
    this.version = '';
    this.state = this.live = this.inventory = null;
    this.traced = [];
    const channel = this._channel;
    this._channel = null;
    const waiting = [...this._waiting.values()];
    this._waiting.clear();
    waiting.forEach(each => {
      each.reject(new Error('The kernel has gone before it answered.'));
    });
    try {
      channel?.dispose();
    } catch {
      // The connection under it is gone already.
    }
  }

  private _link: Link = 'connecting';
  private _visible = false;
  private _started = false;
  private _disposed = false;
  /** The kernel that there is now has not been talked to. */
  private _unmet = true;
  private _mentioned = false;
  private _turn = 0;
  private _next = 1;
  private _timer = 0;
  private _channel: IChannel | null = null;
  private readonly _waiting = new Map<number, IWaiting>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _greeted = new Signal<this, boolean>(this);
}
