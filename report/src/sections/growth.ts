import { scaleLog } from 'd3-scale';
import { nodeLink, s } from '../dom';
import { column } from '../data';
import { clip, digits, power, times } from '../format';
import { columns } from '../classes';
import { figure, type Key } from '../figure';
import type { Frame, TipRow } from '../graphchart';
import { levelOf, type Page } from '../page';
import { table } from '../table';
import { fill, W } from '../words';

type Values = (number | null)[];

interface Panel {
  top: number;
  height: number;
  title: string;
  y(value: number): number;
  ticks: { y: number; text: string }[];
}

const finite = (value: number | null): value is number => value !== null && Number.isFinite(value) && value > 0;

// A log panel that holds all the finite values and whatever must be seen.
function panel(title: string, all: Values[], must: number[], top: number, height: number, multiple: boolean): Panel {
  let low = Infinity;
  let high = -Infinity;
  for (const value of [...all.flat(), ...must]) {
    if (!finite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = [1e-6, 1];
  low = 10 ** Math.floor(Math.log10(low));
  high = 10 ** Math.ceil(Math.log10(high) + 1e-9);
  if (high / low < 10) high = low * 10;
  if (high / low > 1e12) low = high / 1e12;
  const scale = scaleLog().domain([low, high]).range([top + height, top + 8]).clamp(true);
  const first = Math.round(Math.log10(low));
  const last = Math.round(Math.log10(high));
  const step = Math.max(1, Math.ceil((last - first) / 4));
  const ticks = [];
  for (let exponent = first; exponent <= last; exponent += step) {
    const text = multiple ? (exponent >= -2 && exponent <= 4 ? `${digits(10 ** exponent)} ×` : `${power(exponent)} ×`) : power(exponent);
    ticks.push({ y: scale(10 ** exponent), text });
  }
  return { top, height, title, y: (value) => scale(value <= 0 ? low : value), ticks };
}

function drawPanel(marks: SVGGElement, frame: Frame, one: Panel) {
  for (const tick of one.ticks) {
    marks.append(s('path', { d: `M${frame.left} ${tick.y.toFixed(1)}H${frame.right}`, class: 'gridline' }),
      s('text', { x: frame.left - 8, y: (tick.y + 4).toFixed(1), 'text-anchor': 'end', class: 'axis' }, tick.text));
  }
  marks.append(s('text', { x: 0, y: 0, class: 'axis title', transform: `translate(10 ${one.top + one.height / 2}) rotate(-90)`, 'text-anchor': 'middle' }, one.title));
}

// A line through the worst value of each column, broken where nothing is known.
function line(frame: Frame, values: Values, y: (value: number) => number): string {
  let path = '';
  let pen = false;
  for (const { start, end } of columns(frame)) {
    let worst: number | null = null;
    for (let i = start; i < end; i++) {
      const value = values[i];
      if (value !== null && Number.isFinite(value) && (worst === null || value > worst)) worst = value;
    }
    if (worst === null) continue;
    path += `${pen ? 'L' : 'M'}${((frame.x(start) + frame.x(end)) / 2).toFixed(1)} ${y(worst).toFixed(1)}`;
    pen = true;
  }
  return path;
}

function band(frame: Frame, low: Values, high: Values, y: (value: number) => number): string {
  const there: string[] = [];
  const back: string[] = [];
  for (const { start } of columns(frame)) {
    if (!finite(low[start]) || !finite(high[start])) continue;
    there.push(`${frame.mid(start).toFixed(1)} ${y(high[start]!).toFixed(1)}`);
    back.unshift(`${frame.mid(start).toFixed(1)} ${y(low[start]!).toFixed(1)}`);
  }
  return there.length > 1 ? `M${there.join('L')}L${back.join('L')}z` : '';
}

const shapes = {
  ok: (x: number, y: number) => `M${x - 1.6} ${y}a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0-3.2 0z`,
  warn: (x: number, y: number) => `M${x} ${y - 4.5}l4.5 4.5l-4.5 4.5l-4.5-4.5z`,
  bad: (x: number, y: number) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z`,
  lost: (x: number, y: number) => `M${x - 4} ${y - 4}l8 8m0-8l-8 8`,
};

function dots(marks: SVGGElement, frame: Frame, page: Page, values: Values, judged: boolean, one: Panel) {
  const paths = { ok: '', warn: '', bad: '', lost: '' };
  let top = -1;
  for (let i = frame.from; i < frame.to; i++) {
    const value = values[i];
    if (value === null) continue;
    const x = Number(frame.mid(i).toFixed(1));
    if (!Number.isFinite(value)) {
      paths.lost += shapes.lost(x, one.top + 8);
      continue;
    }
    const level = judged ? levelOf(value, page.limits) : 'ok';
    if (level === 'none') continue;
    paths[level] += shapes[level](x, Number(one.y(value).toFixed(1)));
    if (level === 'bad' && (top < 0 || value > values[top]!)) top = i;
  }
  marks.append(s('path', { d: paths.ok, fill: 'var(--ink3)' }), s('path', { d: paths.warn, fill: 'var(--x3)' }), s('path', { d: paths.bad, fill: 'var(--x4)' }),
    s('path', { d: paths.lost, stroke: 'var(--bad)', 'stroke-width': 2, fill: 'none' }));
  if (top < 0) return;
  const text = `${clip(page.graph.name[top], 34)}, ${times(values[top])}`;
  const half = text.length * 3;
  const x = Math.max(frame.left + half, Math.min(frame.right - half, frame.mid(top)));
  marks.append(s('text', { x: x.toFixed(1), y: (one.y(values[top]!) - 8).toFixed(1), 'text-anchor': 'middle', class: 'call' }, text));
}

function lost(marks: SVGGElement, frame: Frame, values: Values, one: Panel) {
  let path = '';
  for (let i = frame.from; i < frame.to; i++) if (values[i] !== null && !Number.isFinite(values[i])) path += shapes.lost(Number(frame.mid(i).toFixed(1)), one.top + 8);
  if (path) marks.append(s('path', { d: path, stroke: 'var(--bad)', 'stroke-width': 2, fill: 'none' }));
}

// Two panels, because the run as a whole and each kernel alone have different floors.
export function growth(page: Page): HTMLElement | null {
  const { graph, limits } = page;
  const align = page.doc.align!;
  const take = (values: (number | string | null | undefined)[] | undefined) => column(values, graph.size);
  const low = take(align.floor_low);
  const high = take(align.floor_high);
  const floor = low && high;
  const entireRaw = take(align.entire);
  const relative = !floor && limits.entire !== null;
  const entire = relative ? limits.entire : entireRaw;
  const singleRaw = take(align.single);
  const single = limits.single ?? singleRaw;
  const judged = limits.single !== null;
  const entireTimes = limits.kind === 'excess' ? W.axis_entire_excess : W.axis_entire_over;
  if (!graph.size || !(entire || single)) return null;
  const baseline = !relative ? take(align.baseline_entire) : limits.kind === 'excess' ? take(align.baseline_excess) : take(align.baseline_over);
  const above = entire ? panel(relative ? entireTimes : W.axis_entire, [entire, baseline ?? [], low ?? [], high ?? []], relative ? [0.1, limits.fine] : [], 18, 140, relative) : null;
  const top = above ? 186 : 14;
  const below = single ? panel(!judged ? W.axis_single : limits.kind === 'excess' ? W.axis_excess : W.axis_over, [single], judged ? [0.1, limits.bad] : [], top, 100, judged) : null;
  const first = graph.find(align.first_divergent ?? null);
  const firstBad = graph.find(align.first_nonfinite ?? null);

  const draw = (marks: SVGGElement, frame: Frame) => {
    if (above && entire) {
      if (floor) marks.append(s('path', { d: band(frame, low!, high!, above.y), fill: 'var(--band)' }));
      if (relative) marks.append(s('rect', { x: frame.left, width: frame.right - frame.left, y: above.y(limits.fine), height: above.top + above.height - above.y(limits.fine), fill: 'var(--band)' }));
      drawPanel(marks, frame, above);
      if (baseline) marks.append(s('path', { d: line(frame, baseline, above.y), class: 'line dashed' }));
      marks.append(s('path', { d: line(frame, entire, above.y), class: 'line' }));
      lost(marks, frame, entire, above);
    }
    if (below && single) {
      if (judged) marks.append(s('rect', { x: frame.left, width: frame.right - frame.left, y: below.y(limits.fine), height: below.top + below.height - below.y(limits.fine), fill: 'var(--band)' }));
      drawPanel(marks, frame, below);
      dots(marks, frame, page, single, judged, below);
    }
    for (const [node, words] of [[first, W.first_divergent], [firstBad, W.first_nonfinite]] as const) {
      if (node < frame.from || node >= frame.to || node < 0 || (node === firstBad && node === first && words === W.first_nonfinite)) continue;
      const x = frame.mid(node);
      const left = x < (frame.left + frame.right) / 2;
      const tall = (below ?? above)!;
      marks.append(s('path', { d: `M${x.toFixed(1)} 2V${tall.top + tall.height}`, class: 'first' }),
        s('text', { x: x + (left ? 5 : -5), y: words === W.first_divergent ? 11 : 24, 'text-anchor': left ? 'start' : 'end', class: 'first' }, fill(words, { node: clip(graph.name[node], frame.width < 480 ? 24 : 50) })));
    }
  };
  const tip = (i: number): TipRow[] => [
    ...(entire ? [[relative ? entireTimes : W.axis_entire, relative ? times(entire[i]) : digits(entire[i])] as TipRow] : []),
    ...(baseline ? [[W.key_baseline, relative ? times(baseline[i]) : digits(baseline[i])] as TipRow] : []),
    ...(floor ? [[W.floor, `${digits(low![i])} – ${digits(high![i])}`] as TipRow] : []),
    ...(single ? [[!judged ? W.axis_single : limits.kind === 'excess' ? W.axis_excess : W.axis_over, judged ? times(single[i]) : digits(single[i])] as TipRow] : []),
  ];
  const bandText = floor || limits.kind === 'excess' ? W.band_floor : W.band_tolerance;
  const nonfinite = [entire, single].some((values) => values?.some((value) => value !== null && !Number.isFinite(value)));
  const legend: Key[] = [
    ...(entire ? [{ mark: 'line', colour: 'ink', text: W.key_entire } as Key] : []),
    ...(baseline ? [{ mark: 'dash', colour: 'ink3', text: W.key_baseline } as Key] : []),
    ...(judged || relative || floor ? [{ mark: 'box', colour: 'band', text: bandText } as Key] : []),
    ...(single ? [{ mark: 'dot', colour: 'ink3', text: W.key_single } as Key] : []),
    ...(judged ? [{ mark: 'diamond', colour: 'x3', text: limits.kind === 'excess' ? W.key_suspicious : W.key_over }, { mark: 'dot', colour: 'x4', text: limits.kind === 'excess' ? W.key_differs : W.key_far } as Key] as Key[] : []),
    ...(nonfinite ? [{ mark: 'glyph', colour: 'bad-fill', glyph: '×', text: W.key_nonfinite } as Key] : []),
  ];
  return figure({
    title: W.growth_title,
    reading: page.reading('growth', limits.kind === 'excess' ? W.growth_reading_excess : W.growth_reading),
    legend,
    body: [page.chart({ label: W.growth_title, height: (below ?? above)!.top + (below ?? above)!.height + 2, draw, tip })],
    how: W.growth_how,
    table: () => table(graph.name.map((_, i) => i), [
      { title: W.node, get: (i) => graph.name[i], show: (i) => nodeLink(graph.name[i]) },
      { title: W.operator, get: (i) => graph.op[i] },
      ...(entireRaw ? [{ title: W.axis_entire, get: (i: number) => entireRaw[i] }] : []),
      ...(singleRaw ? [{ title: W.axis_single, get: (i: number) => singleRaw[i] }] : []),
      ...(limits.single ? [{ title: limits.kind === 'excess' ? W.axis_excess : W.axis_over, get: (i: number) => limits.single![i] }] : []),
    ], { name: 'growth' }),
  });
}
