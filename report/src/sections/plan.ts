import { h, nodeLink, s } from '../dom';
import { num, records, type Copy } from '../data';
import { bytes, time } from '../format';
import { classPaths } from '../classes';
import { figure, type Key } from '../figure';
import { rowLabel, type Frame } from '../graphchart';
import type { Page } from '../page';
import { table } from '../table';
import { fill, say, W } from '../words';

const lane = 24;
const gap = 30;

function drawCopies(page: Page, copies: Copy[], lanes: number[], marks: SVGGElement, frame: Frame) {
  const most = copies.reduce((largest, copy) => Math.max(largest, num(copy.bytes) ?? 0), 1);
  let free = frame.left - 4;
  let heads = '';
  const texts: SVGTextElement[] = [];
  const drawn = new Map<string, number>();
  const wide: Record<string, string> = {};
  for (const copy of copies) {
    const from = lanes.indexOf(page.deviceIndex(copy.from));
    const to = lanes.indexOf(page.deviceIndex(copy.to));
    if (from < 0 || to < 0 || from === to || copy.before < frame.from || copy.before >= frame.to) continue;
    const x = Math.round(frame.x(copy.before) * 2) / 2;
    const down = to > from;
    const y1 = from * (lane + gap) + (down ? lane + 2 : -2);
    const y2 = to * (lane + gap) + (down ? -2 : lane + 2);
    const place = `${x} ${y1} ${y2}`;
    if (drawn.has(place)) continue;
    drawn.set(place, 1);
    const width = (1 + 4 * Math.sqrt((num(copy.bytes) ?? 0) / most)).toFixed(1);
    const tip = down ? -5 : 5;
    wide[width] = `${wide[width] ?? ''}M${x} ${y1}V${y2 + tip}`;
    heads += `M${x - 4} ${y2 + tip}h8l-4 ${-tip}z`;
    const label = bytes(num(copy.bytes));
    const long = label.length * 6 + 8;
    const right = x + long < frame.right;
    if (x - 2 > free + (right ? 0 : long)) {
      texts.push(s('text', { x: x + (right ? 6 : -6), y: (y1 + y2) / 2 + 4, 'text-anchor': right ? 'start' : 'end', class: 'call' }, label));
      free = right ? x + long + 12 : x;
    }
  }
  for (const [width, path] of Object.entries(wide)) marks.append(s('path', { d: path, stroke: 'var(--copy)', 'stroke-width': width, fill: 'none' }));
  marks.append(s('path', { d: heads, fill: 'var(--copy)' }), ...texts);
}

function placement(page: Page): HTMLElement {
  const { graph, doc } = page;
  const copies = records(doc.plan?.copies);
  const used = new Set(graph.name.map((_, i) => page.deviceOf(i)));
  copies.forEach((copy) => [copy.from, copy.to].forEach((device) => used.add(page.deviceIndex(device))));
  const lanes = page.devices.map((_, i) => i).filter((i) => used.has(i));
  const chosen = (i: number) => Boolean(doc.plan?.choice?.[i]);
  const height = Math.max(1, lanes.length) * (lane + gap) - gap;
  const chart = page.chart({
    label: W.placement,
    height,
    draw(marks, frame) {
      lanes.forEach((device, row) => {
        const y = row * (lane + gap);
        const colour = `var(--${page.role(device)})`;
        marks.append(s('rect', { x: frame.left, y, width: frame.right - frame.left, height: lane, fill: 'var(--sunk)' }), rowLabel(page.devices[device], frame, y + lane / 2 + 4));
        classPaths(frame, (i) => (page.deviceOf(i) === device ? (chosen(i) && page.role(device) !== 'target' ? 0 : 1) : -1), y, lane)
          .forEach((path, full) => marks.append(s('path', { d: path, fill: colour, opacity: full ? null : 0.5 })));
      });
      drawCopies(page, copies, lanes, marks, frame);
    },
    tip: (i) => [[W.device, page.devices[page.deviceOf(i)] ?? W.unknown], [W.kernel, doc.plan?.kernel?.[i] || '–'],
      ...(page.refused(i) ? [[W.why, whyNot(page, i)] as [string, string]] : chosen(i) ? [[W.why, W.by_choice] as [string, string]] : [])],
  });
  const roles = new Set(lanes.map((device) => page.role(device)));
  const anyChoice = graph.name.some((_, i) => chosen(i) && page.role(page.deviceOf(i)) !== 'target');
  const legend: Key[] = [
    ...(['target', 'host', 'third'] as const).filter((role) => roles.has(role)).map((role): Key => ({ mark: 'box', colour: role, text: W.lane_roles[role] })),
    ...(anyChoice ? [{ mark: 'half', colour: 'host', text: W.lane_choice } as Key] : []),
    ...(copies.length ? [{ mark: 'line', colour: 'copy', text: W.copy_key } as Key] : []),
  ];
  const rows = graph.name.map((_, i) => i);
  return figure({
    title: W.placement_title,
    reading: page.reading('placement', copies.length ? W.placement_reading : W.placement_one),
    legend,
    body: [chart],
    table: () => table(rows, [
      { title: W.node, get: (i) => graph.name[i], show: (i) => nodeLink(graph.name[i]) },
      { title: W.operator, get: (i) => graph.op[i] },
      { title: W.device, get: (i) => page.devices[page.deviceOf(i)] ?? null },
      { title: W.kernel, get: (i) => doc.plan?.kernel?.[i] || null },
      { title: W.why, get: (i) => (page.refused(i) ? whyNot(page, i) : chosen(i) ? W.by_choice : null) },
    ], { name: 'placement' }),
  });
}

export function reasonText(reason: string | undefined, ...more: (string | undefined)[]): string {
  return [(W.reasons as Record<string, string>)[reason ?? ''] ?? reason, ...more.map((text) => text && say(text))].filter(Boolean).join(': ');
}

// The target's own word on a node it does not run.
export function whyNot(page: Page, node: number): string {
  const refusals = records(page.doc.plan?.refusals?.[node]);
  const first = refusals.find((item) => page.role(page.deviceIndex(item.device ?? '')) === 'target') ?? refusals[0];
  return first ? reasonText(first.reason, first.detail) : W.unknown;
}

function copyTable(page: Page): HTMLElement | null {
  const copies = records(page.doc.plan?.copies);
  if (!copies.length) return null;
  const device = (value: number | string) => (typeof value === 'number' ? page.devices[value] ?? String(value) : value);
  const name = (copy: Copy) => page.graph.name[copy.before] ?? '–';
  return figure({
    title: W.copies_title,
    reading: page.reading('copies', fill(W.copies_reading, { n: copies.length })),
    body: [table(copies, [
      { title: W.before, get: name, show: (copy) => (page.known(copy.before) ? nodeLink(name(copy)) : h('span', {}, '–')) },
      { title: W.from, get: (copy) => device(copy.from) },
      { title: W.to, get: (copy) => device(copy.to) },
      { title: W.bytes, get: (copy) => num(copy.bytes), show: (copy) => bytes(num(copy.bytes)) },
      { title: W.time, get: (copy) => num(copy.ms), show: (copy) => time(num(copy.ms)) },
    ], { name: 'copies', limit: 10, sort: { column: 3, down: true } })],
  });
}

export function plan(page: Page): (HTMLElement | null)[] {
  if (!page.graph.size || !page.devices.length) return [];
  return [placement(page), copyTable(page)];
}
