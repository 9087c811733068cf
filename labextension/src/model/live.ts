/**
 * The ops of a recording that still runs, as they arrive piece by piece (their columns are described in live_view.py), and the trace that
 * they make so far. A message that does not fit is refused whole.
 */
import { blankTable, TABLE_NAMES, type Tables } from './columns';
import { refusal, type ToView } from './messages';
import { PHASES, type ITrace } from './trace';

interface IProgress {
  readonly ops: number;
  readonly seconds: number;
  readonly copied: number;
  /** By device its ops and the bytes that live there. */
  readonly counts: ReadonlyArray<readonly [device: string, ops: number, bytes: number]>;
}

const NO_PROGRESS: IProgress = { ops: 0, seconds: 0, copied: 0, counts: [] };
/** A recording that still runs has no findings, and no language of its own. */
const NOTHING_ELSE = {
  recorded: '',
  producer: '',
  truncated: 0,
  notes: [],
  allClear: false,
  closing: '',
  findings: [],
  memory: [],
  language: 'en'
} as const;
const NAMES = ['start', 'duration', 'name', 'device', 'thread', 'phase'] as const;
type Name = (typeof NAMES)[number];
type Columns = Record<Name, Float64Array>;
type Append = Extract<ToView, { kind: 'append' }>;

export class LiveOps {
  private _title = '';
  private _parts: Columns[] = [];
  private _names: string[] = [];
  private _devices: string[] = [];
  private _simulated = new Set<string>();
  private _threads: string[] = [];
  private _progress = NO_PROGRESS;
  private _running = false;

  get title(): string {
    return this._title;
  }

  get progress(): IProgress {
    return this._progress;
  }

  get isRunning(): boolean {
    return this._running;
  }

  /** Takes in a message; false when it is none of ours or not what it says. */
  take(content: unknown, buffers: readonly DataView[]): boolean {
    if (refusal('to_view', content) !== null) {
      return false;
    }
    const message = content as ToView;
    switch (message.kind) {
      case 'begin':
        this._begin(message.title);
        return true;
      case 'append':
        return this._append(message, buffers);
      case 'end':
        this._running = false;
        this._progress = { ...this._progress, ops: message.ops, seconds: message.seconds };
        return true;
      case 'idle':
        this._running = false;
        return true;
    }
  }

  /** The trace so far, its ops in the order of time. */
  trace(): ITrace {
    const { start, duration, name, device, thread, phase } = this._joined();
    const order = Uint32Array.from(start, (_, i) => i).sort((a, b) => start[a] - start[b] || a - b);
    const strings = ['', ...PHASES, ...this._names, ...this._devices, ...this._threads, 'compute'];
    const names = 1 + PHASES.length;
    const devices = names + this._names.length;
    const threads = devices + this._devices.length;
    const ints = (values: Float64Array, base = 0): Int32Array => Int32Array.from(order, i => values[i] + base);
    return {
      ...(Object.fromEntries(TABLE_NAMES.map(table => [table, blankTable(table)])) as unknown as Tables),
      ...NOTHING_ELSE,
      title: this._title,
      strings,
      devices: {
        name: Int32Array.from(this._devices, (_, i) => devices + i),
        simulated: Int32Array.from(this._devices, name => Number(this._simulated.has(name))),
        length: this._devices.length
      },
      threads: {
        name: Int32Array.from(this._threads, (_, i) => threads + i),
        rank: new Int32Array(this._threads.length),
        length: this._threads.length
      },
      ops: {
        ...blankTable('ops', order.length),
        name: ints(name, names),
        start: Float64Array.from(order, i => start[i]),
        duration: Float64Array.from(order, i => duration[i]),
        device: ints(device),
        thread: ints(thread),
        phase: ints(phase, 1),
        kind: new Int32Array(order.length).fill(strings.length - 1)
      }
    };
  }

  private _begin(title: string): void {
    this._title = title;
    this._parts = [];
    this._names = [];
    this._devices = [];
    this._simulated = new Set();
    this._threads = [];
    this._progress = NO_PROGRESS;
    this._running = true;
  }

  private _append(message: Append, buffers: readonly DataView[]): boolean {
    const names = [...this._names, ...message.names];
    const devices = [...this._devices, ...message.devices];
    const threads = [...this._threads, ...message.threads];
    const part = readColumns(message, buffers);
    const isKnown =
      part &&
      isBelow(part.name, 0, names.length) &&
      isBelow(part.device, -1, devices.length) &&
      isBelow(part.thread, 0, threads.length) &&
      isBelow(part.phase, 0, PHASES.length) &&
      isBelow(part.start, 0, Number.MAX_SAFE_INTEGER) &&
      isBelow(part.duration, -1, Number.MAX_SAFE_INTEGER);
    if (!isKnown) {
      return false;
    }
    [this._names, this._devices, this._threads] = [names, devices, threads];
    message.simulated.forEach(name => this._simulated.add(name));
    this._parts.push(part);
    this._running = true;
    const { ops, seconds, copied } = message;
    const counts = Object.entries(message.counts).map(([device, [made, bytes]]) => [device, made, bytes] as const);
    this._progress = { ops, seconds, copied, counts };
    return true;
  }

  private _joined(): Columns {
    const joined = Object.fromEntries(NAMES.map(name => [name, join(this._parts.map(part => part[name]))])) as Columns;
    this._parts = [joined];
    return joined;
  }
}

/** The columns of a message by name, each of float64; null when they are not as long as it says. */
function readColumns({ length }: Append, buffers: readonly DataView[]): Columns | null {
  if (buffers.length !== NAMES.length || buffers.some(({ byteLength }) => byteLength !== 8 * length)) {
    return null;
  }
  const columns = buffers.map(
    ({ buffer, byteOffset }) => new Float64Array(buffer.slice(byteOffset, byteOffset + 8 * length))
  );
  return Object.fromEntries(NAMES.map((name, i) => [name, columns[i]])) as Columns;
}

function isBelow(values: Float64Array, low: number, high: number): boolean {
  return values.every(value => value >= low && value < high);
}

function join(parts: readonly Float64Array[]): Float64Array {
  const joined = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
