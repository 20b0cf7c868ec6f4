import { s } from '../dom';
import { time, times } from '../format';
import { classOf, classPaths, columns } from '../classes';
import { figure, type Key } from '../figure';
import { rowLabel, type Frame, type TipRow } from '../graphchart';
import { type Page, type Role } from '../page';
import { W } from '../words';

const colours = ['x0', 'x1', 'x2', 'x4'];
const order: Role[] = ['target', 'third', 'host'];

export function timeBars(page: Page, frame: Frame, top: number, height: number): SVGPathElement {
  const cells = columns(frame);
  const values = cells.map(({ start, end }) => page.ms!.slice(start, end).reduce((worst: number, ms) => Math.max(worst, Number.isFinite(ms) ? ms! : 0), 0));
  const most = Math.max(...values, 1e-12);
  const path = cells.map(({ start, end }, i) => {
    const tall = Math.sqrt(values[i] / most) * height;
    const wide = Math.max(0.6, frame.x(end) - frame.x(start) - (frame.step > 4 ? 1 : 0));
    return tall > 0.2 ? `M${frame.x(start).toFixed(1)} ${(top + height - tall).toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}h-${wide.toFixed(1)}z` : '';
  }).join('');
  return s('path', { d: path, fill: 'var(--ink3)' });
}

// Where a node may run, and in what tone: what another device has by choice is half. Later ones hide earlier ones where columns are narrow.
const places: [Role, number][] = [['target', 1], ['third', 0.5], ['host', 0.5], ['third', 1], ['host', 1]];

function placeOf(page: Page, node: number): number {
  const device = page.deviceOf(node);
  if (device < 0) return -1;
  const role = page.role(device);
  const tone = role !== 'target' && page.doc.plan?.choice?.[node] ? 0.5 : 1;
  return places.findIndex((place) => place[0] === role && place[1] === tone);
}

// The model on one strip: where each node runs, how far it is off, what it takes.
export function glance(page: Page): HTMLElement | null {
  const { graph } = page;
  const placed = graph.name.some((_, i) => page.deviceOf(i) >= 0);
  const { single, kind } = page.limits;
  if (!graph.size || !(placed || single || page.ms)) return null;
  const rows = [placed && 'runs', single && 'differs', page.ms && 'takes'].filter(Boolean) as string[];
  const tall = { runs: 16, differs: 14, takes: 24 } as Record<string, number>;
  const height = rows.reduce((sum, row) => sum + tall[row] + 5, 0);
  const roles = new Set(graph.name.map((_, i) => (page.deviceOf(i) < 0 ? null : page.role(page.deviceOf(i)))));
  const legend: Key[] = [
    ...order.filter((role) => roles.has(role)).map((role): Key => ({ mark: 'box', colour: role, text: W.roles[role] })),
    ...(graph.name.some((_, i) => [1, 2].includes(placeOf(page, i))) ? [{ mark: 'half', colour: 'host', text: W.lane_choice } as Key] : []),
    ...(single ? colours.slice(1).map((colour, i): Key => ({ mark: 'box', colour, text: (kind === 'excess' ? W.glance_excess : W.glance_tolerance)[i] })) : []),
    ...(page.ms ? [{ mark: 'none' as Key['mark'], text: graph.blocks.some((block) => block.name) ? `${W.glance_time} ${W.zoom_how}` : W.glance_time }] : []),
  ];
  const chart = page.chart({
    label: W.glance,
    height,
    draw(marks, frame) {
      let y = 0;
      for (const row of rows) {
        if (row === 'runs') classPaths(frame, (i) => placeOf(page, i), y, tall.runs)
          .forEach((path, place) => marks.append(s('path', { d: path, fill: `var(--${places[place][0]})`, opacity: places[place][1] === 1 ? null : places[place][1] })));
        if (row === 'differs') classPaths(frame, (i) => Math.min(3, classOf(single![i], page.limits.edges)), y, tall.differs)
          .forEach((path, level) => marks.append(s('path', { d: path, fill: `var(--${colours[level]})` })));
        if (row === 'takes') marks.append(timeBars(page, frame, y, tall.takes));
        marks.append(rowLabel((W.glance_rows as Record<string, string>)[row], frame, y + tall[row] / 2 + 4));
        y += tall[row] + 5;
      }
    },
    tip: (i) => tipRows(page, i),
  });
  const box = figure({ title: W.glance, body: [chart], legend });
  box.classList.add('glance');
  return box;
}

// The same rows wherever a node is pointed at.
export function tipRows(page: Page, node: number): TipRow[] {
  const rows: TipRow[] = [];
  const device = page.deviceOf(node);
  if (device >= 0) rows.push([W.device, page.devices[device]]);
  if (page.limits.single) rows.push([page.limits.kind === 'excess' ? W.excess : W.over, times(page.limits.single[node])]);
  if (page.ms) rows.push([W.one_run, time(page.ms[node])]);
  return rows;
}
