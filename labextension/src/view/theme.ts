/**
 * Light or dark, and the colours of both the page and the canvases, from whatever surrounds the report.
 */
import type { ITrace } from '../model/trace';
import { deviceName } from '../model/trace';
import type { Fill, IDevicePaint, ITheme } from '../paint/context';
import { hatchCss, paintHatch, TILE } from '../paint/hatch';
import { deviceLook, severityLook, type IDeviceLook } from '../paint/palette';
import type { Scope } from './scope';

/** JupyterLab and Notebook say so on the body, VS Code by a class, a page of ours by an attribute; else the system's wish counts. */
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
  return systemDark(el)?.matches ?? false;
}

function systemDark(el: HTMLElement): MediaQueryList | undefined {
  return el.ownerDocument.defaultView?.matchMedia('(prefers-color-scheme: dark)');
}

/** Gives `root` its colours now and whenever the surroundings change theirs. */
export function followTheme(root: HTMLElement, trace: ITrace, scope: Scope, changed: () => void): void {
  onThemeChange(root, scope, () => {
    dress(root, trace);
    changed();
  });
  dress(root, trace);
}

/** Calls `changed` whenever the surroundings may have gone from light to dark or back. */
export function onThemeChange(root: HTMLElement, scope: Scope, changed: () => void): void {
  const observer = new MutationObserver(changed);
  observer.observe(root.ownerDocument.body, {
    attributeFilter: ['data-jp-theme-light', 'data-jp-theme-name', 'class', 'data-dt-theme', 'data-dt-palette']
  });
  scope.add(() => {
    observer.disconnect();
  });
  const system = systemDark(root);
  if (system) {
    scope.listen(system, 'change', changed);
  }
}

/** Devices beyond this many go without a colour of their own in the page. */
const MOST_COLOURS = 512;

/** The colours of a trace's devices and of severities, as custom properties of `root`. */
export function dress(root: HTMLElement, trace: ITrace): void {
  const dark = isDark(root);
  root.classList.toggle('dt-dark', dark);
  for (let device = 0; device < Math.min(trace.devices.length, MOST_COLOURS); device++) {
    const look = deviceLook(deviceName(trace, device), dark);
    root.style.setProperty(`--dt-device-${device}`, look.fill);
    root.style.setProperty(`--dt-ink-${device}`, look.ink);
    root.style.setProperty(`--dt-hatch-${device}`, hatchCss(look.hatch, look.ink));
  }
  for (const severity of ['error', 'warning', 'note'] as const) {
    root.style.setProperty(`--dt-${severity}`, severityLook(severity, dark).fill);
  }
}

/** What the canvas paints with: the computed values of the page's own colours. */
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

/** A fill for each device: its colour, with its hatch as a pattern of device pixels. */
export function devicePaints(el: HTMLElement, trace: ITrace, dark: boolean, ratio: number): IDevicePaint[] {
  return Array.from({ length: trace.devices.length }, (_, device) => {
    const name = deviceName(trace, device);
    const look = deviceLook(name, dark);
    return {
      name,
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
