import { h, s } from './dom';
import { clip } from './format';
import type { Graph } from './data';
import type { View } from './view';
import { W, fill } from './words';

export interface Frame {
  width: number;
  left: number;
  right: number;
  from: number;
  to: number;
  step: number;
  x(node: number): number;
  mid(node: number): number;
}

export type TipRow = [string, string];

export interface GraphChart {
  label: string;
  height: number;
  draw(marks: SVGGElement, frame: Frame): void;
  tip(node: number): TipRow[];
  axis?: boolean;
}

const tip = h('div', { class: 'tip', hidden: true, 'aria-hidden': 'true' });
const redraws: (() => void)[] = [];
export let paperWidth = 0;

// Paper has its own width: drawn anew before printing, restored after.
export function preparePrint() {
  addEventListener('beforeprint', () => {
    paperWidth = 680;
    redraws.forEach((redraw) => redraw());
  });
  addEventListener('afterprint', () => {
    paperWidth = 0;
    redraws.forEach((redraw) => redraw());
  });
}

function showTip(title: string, rows: TipRow[], x: number, y: number) {
  tip.replaceChildren(h('b', {}, clip(title, 90)), h('dl', {}, ...rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, clip(value, 120))])));
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, innerHeight - box.height - 4))}px`;
}

function drawAxis(svg: SVGSVGElement, graph: Graph, view: View, frame: Frame, height: number) {
  const grid = s('g', { class: 'grid' });
  const labels = s('g', { class: 'axis' });
  let free = frame.left;
  let line = frame.left - 8;
  for (const block of graph.blocks) {
    const from = Math.max(block.start, frame.from);
    const to = Math.min(block.end, frame.to);
    if (from >= to) continue;
    const left = frame.x(from);
    const right = frame.x(to);
    if (from > frame.from && left - line >= 8) {
      grid.append(s('path', { d: `M${left.toFixed(1)} 0V${height}` }));
      line = left;
    }
    const width = Math.min(block.name.length, 14) * 6.2 + 4;
    const middle = Math.min(frame.right - width / 2, Math.max(frame.left + width / 2, (left + right) / 2));
    if (!block.name || middle - width / 2 < free) continue;
    free = middle + width / 2 + 4;
    const label = s('text', { x: middle.toFixed(1), y: height + 14, 'text-anchor': 'middle' }, clip(block.name, 14));
    label.append(s('title', {}, fill(W.zoom_block, { block: block.name })));
    label.addEventListener('click', (event) => {
      event.stopPropagation();
      view.setZoom(block.start, block.end);
    });
    labels.append(label);
  }
  if (view.zoomed) {
    const back = s('text', { x: 0, y: height + 14, class: 'back' }, W.zoom_all);
    back.addEventListener('click', (event) => {
      event.stopPropagation();
      view.setZoom(view.from, view.to);
    });
    labels.append(back);
  }
  svg.append(grid, labels);
}

// A chart whose x is the order of the nodes. All of them share margins, cursor, zoom and keys.
export function graphChart(graph: Graph, view: View, open: (node: number, from: Element) => void, chart: GraphChart): HTMLElement {
  const svg = s('svg', { 'aria-hidden': 'true' });
  const root = h('div', { class: 'chart', tabindex: 0, role: 'slider', 'aria-label': `${chart.label}. ${W.chart_keys}`, 'aria-valuemin': 1,
    'aria-valuemax': graph.size, 'aria-valuenow': 1, 'aria-valuetext': W.no_cursor }, svg);
  const cursor = s('path', { class: 'cursor' });
  const selected = s('path', { class: 'selected' });
  const named = graph.blocks.some((block) => block.name);
  const total = chart.height + (chart.axis === false ? 0 : named ? 20 : 4);
  let frame: Frame | null = null;
  let pointer = false;
  let drawn = '';

  const move = () => {
    if (!frame) return;
    const at = view.cursor >= view.from && view.cursor < view.to ? frame.mid(view.cursor).toFixed(1) : null;
    cursor.setAttribute('d', at ? `M${at} 0V${chart.height}` : '');
    const mark = view.selected >= view.from && view.selected < view.to ? frame.mid(view.selected) : null;
    selected.setAttribute('d', mark === null ? '' : `M${mark} 6V${chart.height}M${mark - 5} 0h10l-5 6z`);
  };
  const draw = () => {
    const width = Math.round(paperWidth || root.clientWidth);
    const key = `${width} ${view.from} ${view.to}`;
    if (width < 40 || key === drawn) return;
    drawn = key;
    const left = width < 480 ? 66 : 96;
    const right = width - 12;
    const step = (right - left) / Math.max(1, view.to - view.from);
    const x = (node: number) => left + (node - view.from) * step;
    frame = { width, left, right, from: view.from, to: view.to, step, x, mid: (node) => x(node + 0.5) };
    svg.setAttribute('viewBox', `0 0 ${width} ${total}`);
    svg.replaceChildren();
    if (chart.axis !== false) drawAxis(svg, graph, view, frame, chart.height);
    const marks = s('g', { class: 'marks' });
    chart.draw(marks, frame);
    svg.append(marks, cursor, selected);
    move();
  };
  const nodeAt = (clientX: number) => {
    if (!frame) return -1;
    const box = svg.getBoundingClientRect();
    const at = ((clientX - box.left) / box.width) * frame.width;
    if (at < frame.left - 4 || at > frame.right + 4) return -1;
    return Math.max(view.from, Math.min(view.to - 1, Math.floor(view.from + (at - frame.left) / frame.step)));
  };
  const tell = (node: number) => {
    root.setAttribute('aria-valuenow', String(node + 1));
    root.setAttribute('aria-valuetext', `${clip(graph.name[node], 120)}. ${chart.tip(node).map(([name, value]) => `${name} ${value}`).join(', ')}`);
  };
  const goTo = (node: number) => {
    const next = Math.max(view.from, Math.min(view.to - 1, node));
    view.setCursor(next);
    tell(next);
    const box = svg.getBoundingClientRect();
    if (frame) showTip(graph.name[next], chart.tip(next), box.left + (frame.mid(next) / frame.width) * box.width, box.top);
  };

  root.addEventListener('pointermove', (event) => {
    pointer = true;
    const node = nodeAt(event.clientX);
    view.setCursor(node);
    if (node < 0) tip.hidden = true;
    else showTip(graph.name[node], [[W.operator, graph.op[node]], ...chart.tip(node)], event.clientX, event.clientY);
  });
  const leave = () => {
    if (pointer) view.setCursor(-1);
    pointer = false;
    tip.hidden = true;
  };
  root.addEventListener('pointerleave', leave);
  root.addEventListener('blur', () => (tip.hidden = true));
  root.addEventListener('click', (event) => {
    const node = nodeAt(event.clientX);
    tip.hidden = true;
    if (node >= 0) open(node, root);
  });
  root.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = view.cursor < 0 ? view.from - 1 : view.cursor;
    const by = event.shiftKey ? 10 : 1;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === 'ArrowRight' || key === 'ArrowUp') goTo(at + by);
    else if (key === 'ArrowLeft' || key === 'ArrowDown') goTo(at - by);
    else if (key === 'Home') goTo(view.from);
    else if (key === 'End') goTo(view.to - 1);
    else if (key === 'Enter' || key === ' ') {
      tip.hidden = true;
      if (view.cursor >= 0) open(view.cursor, root);
    } else if (key === 'z') {
      const block = graph.blocks.find((item) => view.cursor >= item.start && view.cursor < item.end);
      if (view.zoomed) view.setZoom(view.from, view.to);
      else if (block) view.setZoom(block.start, block.end);
    } else if (key === 'Escape' && !tip.hidden) tip.hidden = true;
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  view.on('cursor', move);
  view.on('selected', move);
  view.on('zoom', draw);
  redraws.push(draw);
  new ResizeObserver(draw).observe(root);
  return root;
}

// A row's name, left of the plot.
export function rowLabel(text: string, frame: Frame, y: number): SVGTextElement {
  const label = s('text', { x: frame.left - 8, y, 'text-anchor': 'end', class: 'row' }, clip(text, frame.left < 80 ? 10 : 14));
  label.append(s('title', {}, text));
  return label;
}
