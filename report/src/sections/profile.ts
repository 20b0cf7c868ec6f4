import { h, nodeLink } from '../dom';
import { groupBy, list, num, records } from '../data';
import { clip, percent, time } from '../format';
import { bar, bars } from '../bars';
import { figure, type Key } from '../figure';
import { categoryColour, type Page } from '../page';
import { table } from '../table';
import { W, fill } from '../words';
import { timeBars, tipRows } from './glance';

interface Row {
  label: string;
  nodes: number[];
  ms: number;
}

function groups(page: Page): Row[] {
  const { graph, doc, ms } = page;
  const given = records(doc.profile?.groups).map((group) => ({ label: String(group.label || group.op || '?'), nodes: list(group.nodes), ms: num(group.ms) ?? 0 }));
  const rows = given.length || !ms ? given
    : [...groupBy(graph.name.map((_, i) => i), (i) => graph.op[i])].map(([label, nodes]) => ({ label, nodes, ms: nodes.reduce((sum, i) => sum + (Number.isFinite(ms[i]) ? ms[i]! : 0), 0) }));
  return rows.filter((row) => Number.isFinite(row.ms) && row.ms > 0).sort((a, b) => b.ms - a.ms);
}

function operators(page: Page): HTMLElement | null {
  const rows = groups(page);
  if (!rows.length) return null;
  const total = rows.reduce((sum, row) => sum + row.ms, 0);
  const most = rows[0].ms;
  const colour = (row: Row) => categoryColour(page.graph.category[row.nodes[0]] ?? '');
  let sum = 0;
  const shown = rows.slice(0, 10).map((row) => {
    sum += row.ms;
    return { label: h('span', { title: row.label }, clip(row.label, 60), h('small', { class: 'inline' }, ` ×${row.nodes.length}`)), value: h('span', {}, h('b', {}, time(row.ms)), ` · Σ ${percent(sum / total)}`),
      marks: [bar(0, row.ms / most, colour(row), 13)] };
  });
  const names = W.category_names as Record<string, string>;
  const used = [...new Set(rows.slice(0, 10).map(colour))];
  return figure({
    title: fill(W.operators_title, { n: shown.length }),
    reading: page.reading('operators', fill(W.operators_reading, { share: percent(sum / total) })),
    legend: used.map((name): Key => ({ mark: 'box', colour: name, text: names[name] })),
    body: [bars(shown, null, W.operators_title)],
    table: () => table(rows, [
      { title: W.operator, get: (row) => row.label },
      { title: W.nodes_title, get: (row) => row.nodes.length },
      { title: 'ms', get: (row) => row.ms },
      { title: W.share, get: (row) => row.ms / total, show: (row) => percent(row.ms / total) },
    ], { name: 'operators' }),
  });
}

function overGraph(page: Page): HTMLElement | null {
  const { graph, ms } = page;
  if (!ms || !graph.size) return null;
  return figure({
    title: W.time_title,
    reading: page.reading('time', W.time_reading),
    body: [page.chart({
      label: W.time_title,
      height: 70,
      draw(marks, frame) {
        marks.append(timeBars(page, frame, 4, 66));
      },
      tip: (i) => tipRows(page, i),
    })],
    table: () => table(graph.name.map((_, i) => i), [
      { title: W.node, get: (i) => graph.name[i], show: (i) => nodeLink(graph.name[i]) },
      { title: W.operator, get: (i) => graph.op[i] },
      { title: 'ms', get: (i) => ms[i] },
    ], { name: 'time', sort: { column: 2, down: true } }),
  });
}

export function profile(page: Page): (HTMLElement | null)[] {
  return page.doc.profile ? [operators(page), overGraph(page)] : [];
}
