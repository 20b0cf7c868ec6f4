import { h, type Child } from './dom';
import { W } from './words';

export interface Key {
  mark: 'box' | 'half' | 'line' | 'dash' | 'dot' | 'diamond' | 'glyph' | 'hatch';
  colour?: string;
  glyph?: string;
  text: string;
}

export interface FigureParts {
  title: string;
  reading?: string;
  legend?: Key[];
  body: Child[];
  table?: () => HTMLElement;
  how?: string;
  wide?: boolean;
}

function drawer(label: string, make: () => HTMLElement, always = false): HTMLElement {
  const details = h('details', { class: always ? 'how' : 'data' }, h('summary', {}, label));
  if (always) details.append(make());
  else details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(make());
  });
  return details;
}

// Title, one line that reads the chart, legend, chart, its numbers as a table, how to read it.
export function figure(parts: FigureParts): HTMLElement {
  const legend = parts.legend?.length
    ? h('ul', { class: 'legend' }, ...parts.legend.map((key) =>
      h('li', {}, h('i', { class: `mark ${key.mark}`, style: key.colour ? `--c:var(--${key.colour});--g:var(--${key.colour}-ink)` : null, 'aria-hidden': 'true' }, key.glyph ?? null), key.text)))
    : null;
  const drawers = [
    parts.table ? drawer(W.data_table, parts.table) : null,
    parts.how ? drawer(W.how_to, () => h('p', {}, parts.how!), true) : null,
  ].filter((item): item is HTMLElement => item !== null);
  return h('figure', { class: `figure${parts.wide === false ? ' half' : ''}` },
    h('figcaption', {}, h('h3', {}, parts.title), parts.reading ? h('p', {}, parts.reading) : null),
    legend, ...parts.body, drawers.length ? h('div', { class: 'drawers' }, ...drawers) : null);
}
