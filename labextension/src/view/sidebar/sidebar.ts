/**
 * The sidebar's page: controls, the running cell, findings, traces and devices of one notebook.
 */
import { NOWHERE, type ISidebar } from '../../model/sidebar';
import { sentence } from '../../model/words/catalogue';
import { h } from '../dom';
import { Disposables } from '../disposables';
import { languageAround } from '../language';
import { dressSeverities, isDark, onThemeChange } from '../theme';
import { drawControls } from './controls';
import { drawDevices } from './devices';
import type { IActions } from './drawing';
import { drawFix } from './fix';
import { drawLive } from './live';
import { Part, type IPart } from './section';
import { countFindings, drawFindings } from './findings';
import { drawTraces } from './traces';

export interface IMounted {
  update(shown: ISidebar): void;
  dispose(): void;
}

const PARTS: readonly IPart[] = [
  {
    name: 'controls',
    reads: ['name', 'link', 'version', 'state', 'pending', 'isSlow', 'refused'],
    draw: drawControls
  },
  { name: 'live', reads: ['live'], draw: drawLive, isEmpty: ({ live }) => live === null },
  {
    name: 'findings',
    title: 'panel.findings',
    reads: ['entries', 'fixed'],
    draw: drawFindings,
    count: countFindings
  },
  {
    name: 'fix',
    title: 'panel.fix',
    reads: ['fix', 'link', 'hasCells'],
    draw: drawFix,
    isEmpty: ({ hasCells }) => !hasCells
  },
  {
    name: 'traces',
    title: 'panel.traces',
    reads: ['entries'],
    draw: drawTraces,
    count: ({ entries }) => [{ text: String(entries.length) }]
  },
  {
    name: 'devices',
    title: 'panel.devices',
    reads: ['inventory'],
    draw: drawDevices,
    isEmpty: ({ inventory, link }) => inventory === null && link !== 'connected',
    count: ({ inventory }) => (inventory === null ? [] : [{ text: String(inventory.devices.length) }])
  }
];

export function mountSidebar(el: HTMLElement, actions: IActions): IMounted {
  const scope = new Disposables();
  const language = languageAround(el);
  const root = h(el, 'section', {
    class: 'dt-root dt-sidebar',
    aria: { label: sentence(language, 'panel.name') },
    data: { devtrace: 'sidebar' },
    attributes: { tabindex: '-1' }
  });
  const parts = PARTS.map(each => new Part(root, each, actions, language));
  root.append(...parts.map(({ node }) => node));
  el.append(root);
  dressSeverities(root, isDark(root));
  onThemeChange(root, scope, () => {
    dressSeverities(root, isDark(root));
    parts.forEach(part => {
      part.redraw();
    });
  });
  const update = (shown: ISidebar): void => {
    root.dataset['link'] = shown.link;
    parts.forEach(part => {
      part.update(shown);
    });
    root.dataset['ready'] = 'true';
  };
  update(NOWHERE);
  return {
    update,
    dispose: () => {
      parts.forEach(part => {
        part.dispose();
      });
      scope.dispose();
      root.remove();
    }
  };
}
