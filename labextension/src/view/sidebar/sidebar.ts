/**
 * The sidebar's page: controls, the running cell, findings, traces and devices of one notebook.
 */
import { NOWHERE, type ISidebar } from '../../model/sidebar';
import { severityLook } from '../../paint/palette';
import { h } from '../dom';
import { Disposables } from '../disposables';
import { isDark, onThemeChange } from '../theme';
import { drawControls, type IControls } from './controls';
import { drawDevices } from './devices';
import { drawLive } from './live';
import { part, section } from './section';
import { countFindings, drawFindings, drawTraces, type IOpenings } from './traces';

export type IActions = IControls & IOpenings;

export interface IMounted {
  update(shown: ISidebar): void;
  dispose(): void;
}

const CONTROLS: ReadonlyArray<keyof ISidebar> = ['name', 'link', 'version', 'state', 'wanted', 'waiting', 'refused'];

function sameOf(keys: ReadonlyArray<keyof ISidebar>): (a: ISidebar, b: ISidebar) => boolean {
  return (a, b) => keys.every(key => a[key] === b[key]);
}

export function mountSidebar(el: HTMLElement, actions: IActions): IMounted {
  const scope = new Disposables();
  const root = h(el, 'section', {
    class: 'dt-root dt-sidebar',
    aria: { label: 'Devtrace' },
    data: { devtrace: 'sidebar' },
    attributes: { tabindex: '-1' }
  });
  const open = new Map<string, boolean>();
  const parts = [
    part<ISidebar>(
      root,
      'controls',
      (shown, body, inner) => {
        drawControls(shown, body, inner, actions);
      },
      sameOf(CONTROLS)
    ),
    part<ISidebar>(
      root,
      'live',
      ({ live }, body) => {
        drawLive(live, body);
      },
      sameOf(['live'])
    ),
    section<ISidebar>(
      root,
      'Findings',
      ({ entries }, body, inner) => {
        drawFindings(entries, body, inner, open, actions);
      },
      sameOf(['entries']),
      ({ entries }) => String(countFindings(entries))
    ),
    section<ISidebar>(
      root,
      'Traces',
      ({ entries }, body, inner) => {
        drawTraces(entries, body, inner, actions);
      },
      sameOf(['entries']),
      ({ entries }) => String(entries.length)
    ),
    section<ISidebar>(
      root,
      'Devices',
      ({ inventory }, body, inner) => {
        drawDevices(inventory, body, inner, open);
      },
      sameOf(['inventory']),
      ({ inventory }) => (inventory === null ? '' : String(inventory.devices.length))
    )
  ];
  root.append(...parts.map(({ node }) => node));
  const dress = (): void => {
    const dark = isDark(root);
    root.classList.toggle('dt-dark', dark);
    for (const severity of ['error', 'warning', 'note'] as const) {
      root.style.setProperty(`--dt-${severity}`, severityLook(severity, dark).fill);
    }
  };
  el.append(root);
  dress();
  onThemeChange(root, scope, () => {
    dress();
    parts.forEach(each => {
      each.redraw();
    });
  });
  const update = (shown: ISidebar): void => {
    root.dataset['link'] = shown.link;
    parts.forEach(each => {
      each.update(shown);
      each.node.hidden = each !== parts[0] && (shown.link === 'nowhere' || (each === parts[1] && shown.live === null));
    });
    root.dataset['ready'] = 'true';
  };
  update(NOWHERE);
  return {
    update,
    dispose: () => {
      parts.forEach(each => {
        each.dispose();
      });
      scope.dispose();
      root.remove();
    }
  };
}
