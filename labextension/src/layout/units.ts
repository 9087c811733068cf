/**
 * Numbers and op names as people read them, in the same words as Python's words/text_format.py: tests/golden/numbers.json holds both to it.
 */
import { sentence, type Language } from '../model/words/catalogue';

const TIMES: ReadonlyArray<readonly [size: number, name: string]> = [
  [1, 'ns'],
  [1e3, 'µs'],
  [1e6, 'ms'],
  [1e9, 's']
];
const LONGER_TIMES: typeof TIMES = [
  [60e9, 'min'],
  [3_600e9, 'h'],
  [86_400e9, 'd']
];
const BYTES = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** Above this three digits round up to 1000, and the next unit says it in fewer. */
const MOST_OF_A_UNIT = 999.5;

/** `850 ns`, `12.4 ms`, `3 s`, `2 min 05 s`, `3 h 20 min` */
export function formatTime(nanoseconds: number): string {
  const [size, name] = TIMES.find(([each]) => nanoseconds < MOST_OF_A_UNIT * each) ?? [1e9, 's'];
  const seconds = nanoseconds / 1e9;
  if (seconds < 119.5) {
    return `${threeDigits(nanoseconds / size)} ${name}`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 120
    ? `${minutes} min ${twoDigits(Math.floor(seconds % 60))} s`
    : `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} min`;
}

function twoDigits(count: number): string {
  return String(count).padStart(2, '0');
}

/** `512 B`, `1.5 KB`, `38.6 MB`, `768 KB` */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= MOST_OF_A_UNIT && unit < BYTES.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${toFixedEven(value, unit === 0 || value >= 99.95 ? 0 : 1)} ${BYTES[unit]}`;
}

/** Three significant digits without trailing zeros, as Python's `.3g` of numbers from 0.0001 to 999.5. */
function threeDigits(value: number): string {
  const before = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const text = toFixedEven(value, Math.max(2 - before, 0));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** `toFixed`, but a tie goes to the even digit as in Python: 12.25 is 12.2. */
function toFixedEven(value: number, digits: number): string {
  // A tie is half a unit of the last digit, which a double holds exactly only with at most `digits + 1` binary places.
  const steps = value * 2 ** (digits + 1);
  const halves = steps * 5 ** digits;
  if (!Number.isInteger(steps) || Math.abs(halves % 2) !== 1) {
    return value.toFixed(digits);
  }
  const below = (halves - 1) / 2;
  return ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits);
}

/** `1,234` */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** `addmm` of `aten.addmm.default`: without namespace and overload. */
export function shortOpName(name: string): string {
  return name.split('.')[1] || name;
}

/** The most characters of one text that a view shows; a name of 1 MB is cut, not laid out. */
const LONGEST = 2000;

/** The text, cut where it is too long. */
export function clipped(text: string, language: () => Language): string {
  const { length } = text;
  return length <= LONGEST ? text : text.slice(0, LONGEST) + sentence(language(), 'text.cut', { count: length });
}

export interface ITick {
  readonly time: number;
  readonly label: string;
}

/** Round times in [begin, end], at most `most` of them, labelled in one unit. */
export function timeTicks(begin: number, end: number, most: number): ITick[] {
  const step = roundStep((end - begin) / Math.max(most, 1));
  const fits = ([size]: readonly [number, string]): boolean => Math.abs(end) >= size && step >= size / 1000;
  const [unit, name] = [...TIMES, ...LONGER_TIMES].findLast(fits) ?? [1, 'ns'];
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
