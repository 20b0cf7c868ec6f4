import { h, s, type Child } from './dom';
import { clip } from './format';

export interface Scale {
  (value: number): number;
  ticks: { at: number; label: string; strong?: boolean }[];
}

export interface BarRow {
  label: Child;
  sub?: Child;
  strong?: boolean;
  value: Child;
  marks: SVGElement[];
}

export const at = (share: number) => `${(Math.max(0, Math.min(1, share)) * 100).toFixed(2)}%`;

export function bar(from: number, to: number, colour: string, height = 12, opacity = 1): SVGRectElement {
  return s('rect', { x: at(from), width: at(Math.max(0, to - from)), y: (20 - height) / 2, height, rx: 1.5, fill: `var(--${colour})`, opacity: opacity === 1 ? null : opacity });
}

export function rule(share: number, colour: string, y1 = 4, y2 = 16, width = 1.5): SVGLineElement {
  return s('line', { x1: at(share), x2: at(share), y1, y2, stroke: `var(--${colour})`, 'stroke-width': width });
}

export function span(from: number, to: number, colour: string, width = 1.5): SVGLineElement {
  return s('line', { x1: at(from), x2: at(to), y1: 10, y2: 10, stroke: `var(--${colour})`, 'stroke-width': width });
}

export function dot(share: number, colour: string, radius = 4, hollow = false, y = 10): SVGCircleElement {
  return s('circle', { cx: at(share), cy: y, r: radius, fill: hollow ? 'var(--surface)' : `var(--${colour})`, stroke: `var(--${colour})`, 'stroke-width': hollow ? 2 : 0 });
}

// Rows of marks on one scale, in per cent of the width: the browser lays them out anew at every width, on paper too.
export function bars(rows: BarRow[], scale: Scale | null, label: string, back: () => SVGElement[] = () => []): HTMLElement {
  const grid = () => (scale ? scale.ticks.map((tick) => rule(tick.at, 'line', 0, 20, 1)) : []);
  const items = rows.map((row) => h('li', {},
    h('span', { class: `label${row.strong ? ' strong' : ''}`, title: typeof row.label === 'string' ? row.label : null }, typeof row.label === 'string' ? clip(row.label, 70) : row.label, row.sub ? h('small', {}, row.sub) : null),
    s('svg', { class: 'plot', height: 20, 'aria-hidden': 'true' }, ...back(), ...grid(), ...row.marks),
    h('span', { class: 'value' }, row.value)));
  const axis = scale ? h('li', { class: 'ticks', 'aria-hidden': 'true' }, h('span', { class: 'label' }),
    h('span', { class: 'plot' }, ...scale.ticks.map((tick) => h('i', { style: `left:${at(tick.at)}`, class: tick.strong ? 'strong' : null }, tick.label))), h('span', { class: 'value' })) : null;
  return h('ul', { class: 'bars', 'aria-label': label }, ...items, axis);
}
