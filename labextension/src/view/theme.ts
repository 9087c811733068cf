/**
 * Light or dark, and the colours of both the boxes and the canvases, taken from the page round the report.
 */
import { deviceName, type ITrace } from '../model/trace';
import type { Fill, IDevicePaint, ITheme } from '../paint/context';
import { hatchCss, paintHatch, TILE } from '../paint/hatch';
import { deviceLook, severityLook, type IDeviceLook } from '../paint/palette';
import { Listeners, type Disposables } from './disposables';

/**
 * True if the page round an element is dark. JupyterLab and Notebook mark the body, VS Code gives it a class, a page of ours has an
 * attribute; elsewhere the ground that the element stands on tells, and not the system, whose choice the page need not follow.
 */
export function isDark(el: HTMLElement): boolean {
  const asked = el.closest<HTMLElement>('[data-dt-theme]')?.dataset['dtTheme'];
  const { body } = el.ownerDocument;
  if (asked !== undefined) {
    return asked === 'dark';
  }
  if (body.dataset['jpThemeLight'] !== undefined) {
    return body.dataset['jpThemeLight'] === 'false';
  }
  if (/\bvscode-(dark|light|high-contrast)/.test(body.className)) {
    return !/\bvscode-(light|high-contrast-light)/.test(body.className);
  }
  return isDarkGround(el);
}

/** True if the ground is darker than the middle; where all is transparent, if the text is lighter than that. */
function isDarkGround(el: HTMLElement): boolean {
  for (let at = parentOf(el); at; at = parentOf(at)) {
    const ground = luminance(getComputedStyle(at).backgroundColor);
    if (ground !== null) {
      return ground < 0.5;
    }
  }
  return (luminance(getComputedStyle(parentOf(el) ?? el).color) ?? 0) > 0.5;
}

/** What an element stands in: its parent, its shadow's host, the frame round its page where that may be looked at. */
function parentOf(el: Element): Element | null {
  const root = el.getRootNode();
  const around = root instanceof ShadowRoot ? root.host : el.ownerDocument.defaultView?.frameElement;
  return el.parentElement ?? around ?? null;
}

/** The lightness of a colour from 0 to 1, in whatever form the browser gives it; null if one sees through it. */
function luminance(colour: string): number | null {
  const parts = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(colour);
  const [red = 0, green = 0, blue = 0, alpha = 1] = parts
    ? parts.slice(1).map(part => Number(part || 1))
    : painted(colour);
  return alpha < 0.5 ? null : (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}

/** What a canvas makes of a colour that is not written in red, green and blue (oklch and its kin). */
function painted(colour: string): number[] {
  const ctx = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  if (!ctx) {
    return [];
  }
  ctx.fillStyle = colour;
  ctx.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0, alpha = 255] = ctx.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
}

function systemDark(el: HTMLElement): MediaQueryList | undefined {
  return el.ownerDocument.defaultView?.matchMedia('(prefers-color-scheme: dark)');
}

/** Keeps the colours of a report those of the page: its custom properties are set here. */
export class Theme {
  private _isDark: boolean;

  /** For what paints by itself. */
  readonly changed = new Listeners<boolean>();

  constructor(root: HTMLElement, trace: ITrace, disposables: Disposables) {
    this._isDark = isDark(root);
    dress(root, trace);
    onThemeChange(root, disposables, () => {
      this._isDark = isDark(root);
      dress(root, trace);
      this.changed.call(this._isDark);
    });
  }

  get isDark(): boolean {
    return this._isDark;
  }
}

/** Call `changed` whenever the page, or one that it is framed in, may have gone from light to dark or back. */
export function onThemeChange(root: HTMLElement, disposables: Disposables, changed: () => void): void {
  const observer = new MutationObserver(changed);
  const attributeFilter = ['class', 'style', 'theme', 'data-theme', 'data-dt-theme'];
  for (
    let page: Document | undefined = root.ownerDocument;
    page;
    page = page.defaultView?.frameElement?.ownerDocument
  ) {
    observer.observe(page.body, { attributeFilter: [...attributeFilter, 'data-jp-theme-light', 'data-jp-theme-name'] });
    observer.observe(page.documentElement, { attributeFilter });
  }
  disposables.add(() => {
    observer.disconnect();
  });
  const system = systemDark(root);
  if (system) {
    disposables.listen(system, 'change', changed);
  }
}

/** Devices beyond this many go without a colour of their own in the page. */
const MOST_COLOURS = 512;

/** Set the colours of a trace's devices and of severities as custom properties of `root`. */
export function dress(root: HTMLElement, trace: ITrace): void {
  const dark = isDark(root);
  dressSeverities(root, dark);
  for (let device = 0; device < Math.min(trace.devices.length, MOST_COLOURS); device++) {
    const look = deviceLook(deviceName(trace, device), dark);
    root.style.setProperty(`--dt-device-${device}`, look.fill);
    root.style.setProperty(`--dt-ink-${device}`, look.ink);
    root.style.setProperty(`--dt-hatch-${device}`, hatchCss(look.hatch, look.ink));
  }
}

export function dressSeverities(root: HTMLElement, dark: boolean): void {
  root.classList.toggle('dt-dark', dark);
  for (const severity of ['error', 'warning', 'note'] as const) {
    root.style.setProperty(`--dt-${severity}`, severityLook(severity, dark).fill);
  }
}

/** Read the colours that the canvas paints with: the computed values of the page's own. */
export function readTheme(el: HTMLElement): ITheme {
  const style = getComputedStyle(el);
  const value = (name: string): string => style.getPropertyValue(name).trim();
  return {
    dark: el.closest('.dt-dark') !== null,
    text: value('--dt-text'),
    faintText: value('--dt-faint-text'),
    line: value('--dt-line'),
    faintLine: value('--dt-faint-line'),
    ground: value('--dt-ground'),
    raised: value('--dt-raised'),
    accent: value('--dt-accent'),
    font: `11px ${style.fontFamily}`
  };
}

/** Make a fill for each device: its colour, with its hatch as a pattern of device pixels. */
export function devicePaints(el: HTMLElement, trace: ITrace, dark: boolean, ratio: number): IDevicePaint[] {
  return Array.from({ length: trace.devices.length }, (_, device) => {
    const look = deviceLook(deviceName(trace, device), dark);
    return {
      simulated: trace.devices.simulated[device] === 1,
      colour: look.fill,
      ink: look.ink,
      fill: device < MOST_COLOURS ? hatched(el, look, ratio) : look.fill
    };
  });
}

function hatched(el: HTMLElement, look: IDeviceLook, ratio: number): Fill {
  const tile = el.ownerDocument.createElement('canvas');
  tile.width = tile.height = Math.round(TILE * ratio);
  const ctx = look.hatch === 'none' ? null : tile.getContext('2d');
  if (!ctx) {
    return look.fill;
  }
  ctx.fillStyle = look.fill;
  ctx.fillRect(0, 0, tile.width, tile.height);
  ctx.scale(tile.width / TILE, tile.height / TILE);
  ctx.globalAlpha = 0.3;
  ctx.strokeStyle = ctx.fillStyle = look.ink;
  ctx.lineWidth = 1;
  paintHatch(ctx, look.hatch);
  const pattern = ctx.createPattern(tile, 'repeat');
  pattern?.setTransform(new DOMMatrix().scale(TILE / tile.width));
  return pattern ?? look.fill;
}
