import { LabIcon } from '@jupyterlab/ui-components';

/** Two lanes, and what crosses from one to the other. */
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="2" y="4" width="9" height="5" rx="1.5"/>
    <rect x="13" y="4" width="4" height="5" rx="1.5" opacity=".55"/>
    <rect x="19" y="4" width="3" height="5" rx="1.5"/>
    <rect x="2" y="15" width="4" height="5" rx="1.5" opacity=".55"/>
    <rect x="13" y="15" width="9" height="5" rx="1.5"/>
    <path d="M8 10.2 13.2 13l.8-1.2.8 3.6-3.7.2.8-1.2L7.2 11.6z"/>
  </g>
</svg>`;

export const traceIcon = new LabIcon({ name: 'devtrace:trace', svgstr: SVG });
