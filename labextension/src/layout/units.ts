/**
 * Numbers as people read them: times, bytes, counts.
 */

const TIMES: ReadonlyArray<readonly [number, string]> = [
  [86_400e9, 'd'],
  [3_600e9, 'h'],
  [60e9, 'min'],
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns']
];

const BYTES: ReadonlyArray<readonly [number, string]> = [
  [1e12, 'TB'],
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'KB'],
  [1, 'B']
];

/** 999.6 KB is 1 MB: three digits hold no more. */
const ROUNDS_UP = 0.9995;

function scaled(value: number, units: ReadonlyArray<readonly [number, string]>): string {
  const [unit, name] = units.find(([size]) => Math.abs(value) >= size * ROUNDS_UP) ?? units[units.length - 1];
  return `${significant(value / unit)} ${name}`;
}

/** Three digits that count, no trailing zeros. */
function significant(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits).replace(/\.0+$|(\.\d*?)0+$/, '$1');
}

/** `1.25 ms` of a number of ns. */
export function formatTime(ns: number): string {
  return scaled(ns, TIMES);
}

export function formatBytes(bytes: number): string {
  return scaled(bytes, BYTES);
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 op`, `2 ops` */
export function counted(count: number, noun: string, nouns = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : nouns}`;
}

export interface ITick {
  readonly time: number;
  readonly label: string;
}

/** Round times in [begin, end], at most `most` of them, labelled in one unit. */
export function timeTicks(begin: number, end: number, most: number): ITick[] {
  const step = roundStep((end - begin) / Math.max(most, 1));
  const [unit, name] = TIMES.find(([size]) => Math.abs(end) >= size && step >= size / 1000) ?? [1, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return ticks(begin, end, step, time => `${(time / unit).toFixed(digits)} ${name}`);
}

/** Round positions in a count of ops. */
export function countTicks(begin: number, end: number, most: number): ITick[] {
  const step = Math.max(1, roundStep((end - begin) / Math.max(most, 1)));
  return ticks(begin, end, step, at => formatCount(at));
}

function ticks(begin: number, end: number, step: number, label: (time: number) => string): ITick[] {
  const first = Math.ceil(begin / step);
  const count = Math.max(0, Math.floor(end / step) - first + 1);
  return Array.from({ length: Math.min(count, 1000) }, (_, i) => (first + i) * step).map(time => ({
    time,
    label: label(time)
  }));
}

/** The smallest of 1, 2, 5 times a power of ten that is at least `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  return (([1, 2, 5, 10] as const).find(times => times * power >= least) ?? 10) * power;
}
