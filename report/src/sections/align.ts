import { nodeLink, pill, s } from '../dom';
import { column, list, num, records, type Raw, type Value } from '../data';
import { digits, metric as shown, times } from '../format';
import { classOf, classPaths } from '../classes';
import { figure, type Key } from '../figure';
import { rowLabel } from '../graphchart';
import type { Page } from '../page';
import { table } from '../table';
import { fill, say, W } from '../words';
import { bisection } from './bisection';
import { causes } from './cause';
import { growth } from './growth';

function hatch(marks: SVGGElement, path: string) {
  if (!path) return;
  const id = `hatch${document.querySelectorAll('pattern').length}`;
  marks.append(s('pattern', { id, width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    s('rect', { width: 5, height: 5, fill: 'var(--surface)' }), s('path', { d: 'M0 0V5', stroke: 'var(--ink3)', 'stroke-width': 1.2 })),
  s('path', { d: path, fill: `url(#${id})` }));
}

// Layers × metrics; every number is a multiple of what is allowed, so all rows share one scale.
function heat(page: Page): HTMLElement | null {
  const { graph, doc, limits } = page;
  const align = doc.align!;
  const given = Array.isArray(align.heat) ? align.heat.map((row, i) => ({ name: say(String(align.metrics?.[i] ?? i)), values: column(row as Raw[], graph.size) })) : [];
  const own = [{ name: W.single, values: limits.single }, { name: W.entire, values: limits.entire }];
  const rows = (given.some((row) => row.values) ? given : own).filter((row) => row.values) as { name: string; values: (number | null)[] }[];
  if (!graph.size || !rows.length) return null;
  const hidden = new Set(list(align.hidden));
  const tall = 16;
  const excess = limits.kind === 'excess';
  const levels = excess ? W.heat_excess : W.heat_tolerance;
  return figure({
    title: W.heat_title,
    reading: page.reading('heat', excess ? W.heat_reading_excess : W.heat_reading_tolerance),
    legend: [...levels.map((text, i): Key => ({ mark: 'box', colour: `x${i}`, text })), ...(hidden.size ? [{ mark: 'hatch', text: W.hidden } as Key] : [])],
    body: [page.chart({
      label: W.heat_title,
      height: rows.length * (tall + 2) + 2,
      draw(marks, frame) {
        rows.forEach((row, r) => {
          const y = r * (tall + 2);
          const rank = (i: number) => (hidden.has(i) ? -1 : classOf(row.values[i], limits.edges));
          classPaths(frame, rank, y, tall).forEach((path, level) => marks.append(s('path', { d: path, fill: `var(--x${level})` })));
          hatch(marks, classPaths(frame, (i) => (hidden.has(i) ? 0 : -1), y, tall).get(0) ?? '');
          marks.append(rowLabel(row.name, frame, y + tall / 2 + 4));
        });
      },
      tip: (i) => rows.map((row): [string, string] => [row.name, hidden.has(i) ? W.hidden : times(row.values[i])]),
    })],
    table: () => table(graph.name.map((_, i) => i), [
      { title: W.node, get: (i) => graph.name[i], show: (i) => nodeLink(graph.name[i]) },
      { title: W.operator, get: (i) => graph.op[i] },
      ...rows.map((row) => ({ title: row.name, get: (i: number) => row.values[i] })),
    ], { name: 'heat' }),
  });
}

export const verdictKind: Record<string, string> = { match: 'ok', explained: 'ok', suspicious: 'warn', differ: 'bad', undefined: 'warn', 'as-baseline': 'warn', hidden: 'none' };
const severity = ['hidden', 'match', 'explained', 'undefined', 'as-baseline', 'suspicious', 'differ'];

function layers(page: Page): HTMLElement | null {
  const values = records(page.doc.align?.values);
  if (!values.length) return null;
  const { limits, graph } = page;
  const far = (value: Value) => (limits.single ? limits.single[graph.find(value.node)] ?? null : null);
  const worst = [...values].sort((a, b) => severity.indexOf(b.verdict ?? '') - severity.indexOf(a.verdict ?? '')
    || (Number.isNaN(far(b)) ? Infinity : far(b) ?? -1) - (Number.isNaN(far(a)) ? Infinity : far(a) ?? -1) || 0);
  const has = (part: 'single' | 'entire', metric: string) => values.some((value) => value[part] && metric in value[part]!);
  const metric = (part: 'single' | 'entire', name: string) => has(part, name)
    ? [{ title: `${part === 'single' ? W.single : W.entire} ${name}`, get: (value: Value) => num(value[part]?.[name]), show: (value: Value) => shown(name, num(value[part]?.[name])) }] : [];
  return figure({
    title: W.layers_title,
    reading: page.reading('layers', W.layers_reading),
    body: [table(worst, [
      { title: W.node, get: (value) => (value.node === undefined ? value.name ?? null : page.nameOf(value.node)), show: (value) => {
        const name = value.node === undefined ? value.name ?? '?' : page.nameOf(value.node);
        return nodeLink(name, page.known(name));
      } },
      { title: W.operator, get: (value) => value.op ?? null },
      { title: W.dtype, get: (value) => value.dtype ?? null },
      { title: W.verdict, get: (value) => value.verdict ?? null, show: (value) => (value.verdict ? pill(verdictKind[value.verdict] ?? 'none', (W.value_verdicts as Record<string, string>)[value.verdict] ?? value.verdict) : '–') },
      ...(limits.single ? [{ title: limits.kind === 'excess' ? W.excess : W.over, get: far, show: (value: Value) => times(far(value)) }] : []),
      ...metric('single', 'max_abs'), ...metric('single', 'rel_l2'), ...metric('single', 'cosine'),
      ...metric('entire', 'max_abs'), ...metric('entire', 'rel_l2'), ...metric('entire', 'cosine'),
    ], { name: 'layers', limit: 12 })],
    how: `${fill(page.doc.align?.atol_scaled_by_rms ? W.layers_how_scaled : W.layers_how, { atol: digits(num(page.doc.align?.atol)), rtol: digits(num(page.doc.align?.rtol)) })} ${W.layers_how_metrics}`,
  });
}

export function align(page: Page): (HTMLElement | null)[] {
  if (!page.doc.align) return [];
  return [bisection(page), causes(page), growth(page), heat(page), layers(page)];
}
