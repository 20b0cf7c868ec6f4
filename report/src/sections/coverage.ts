import { h } from '../dom';
import { groupBy, num, records, type Platform, type ScanNode } from '../data';
import { clip, digits } from '../format';
import { figure } from '../figure';
import type { Page } from '../page';
import { glyphs, splitBar, stateOf, states, type State } from '../states';
import { scroller, table } from '../table';
import { say, W } from '../words';

interface Item {
  name: string;
  op: string;
  category: string;
}

// The states of all nodes on all platforms, from rows that may leave out what is native.
export class Coverage {
  readonly items: Item[];
  readonly platforms: Platform[];
  readonly rows: ScanNode[];
  private readonly known = new Map<string, Map<string, State>>();
  private readonly rest = new Map<string, State>();

  constructor(readonly page: Page) {
    const { graph, doc } = page;
    const platforms = records(doc.scan?.platforms);
    this.platforms = [...platforms.filter((one) => this.isTarget(one)), ...platforms.filter((one) => !this.isTarget(one))];
    this.rows = records(doc.scan?.nodes);
    const named = new Map<string, Item>();
    graph.name.forEach((name, i) => named.set(name, { name, op: graph.op[i], category: graph.category[i] || W.other }));
    for (const row of this.rows) {
      const name = page.nameOf(row.node);
      if (!named.has(name)) named.set(name, { name, op: row.op ?? '', category: row.category || W.other });
      const platform = row.platform ?? this.platforms[0]?.name ?? '';
      if (!this.known.has(platform)) this.known.set(platform, new Map());
      this.known.get(platform)!.set(name, stateOf(row.state));
    }
    this.items = [...named.values()];
    for (const platform of this.platforms) {
      const listed = [...(this.known.get(platform.name)?.values() ?? [])].filter((state) => state !== 'native').length;
      this.rest.set(platform.name, (platform.native ?? -1) + listed === platform.nodes ? 'native' : 'unknown');
    }
  }

  count(items: Item[], platform: Platform): Map<State, number> {
    const counts = new Map<State, number>();
    for (const item of items) {
      const state = this.known.get(platform.name)?.get(item.name) ?? this.rest.get(platform.name) ?? 'unknown';
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    return counts;
  }

  isTarget(platform: Platform): boolean {
    return platform.role === 'target' || (!platform.role && platform.name === this.page.doc.target);
  }
}

function effortDots(difficulty: string | undefined): Node | string {
  const words = W.difficulty as Record<string, string>;
  const level = { low: 1, direct: 1, medium: 2, attributes: 2, high: 3, kernel: 3, tokens: 3 }[difficulty ?? ''];
  if (!level) return difficulty || '';
  return h('span', { class: 'effort', title: words[level] }, h('span', { 'aria-hidden': 'true' }, '●'.repeat(level), h('i', {}, '●'.repeat(3 - level))), h('span', { class: 'hide' }, words[level]));
}

function triage(platform: Platform): HTMLElement {
  const parts = [platform.p0, platform.p1, platform.p2].map((value) => value ?? 0);
  return h('b', {}, parts[0] ? h('span', { class: 'bad' }, `${parts[0]} × P0`) : '0', ` · ${parts[1]} · ${parts[2]}`);
}

export function days(range: Platform['effort_days']): string {
  const low = num(range?.[0]);
  const high = num(range?.[1]);
  if (low === null || high === null) return '–';
  if (high > 60) return W.rearchitecture;
  return low === high ? digits(low) : `${digits(low)} – ${digits(high)}`;
}

function body(coverage: Coverage): HTMLElement {
  const about = new Map(records(coverage.page.doc.scan?.categories).map((item) => [item.name ?? '', item]));
  const groups = groupBy(coverage.items, (item) => item.category);
  const order = [...new Set([...about.keys(), ...groups.keys()])].filter((name) => groups.has(name));
  const rows = h('tbody');
  const cells = (items: Item[]) => coverage.platforms.map((platform) =>
    h('td', { class: coverage.isTarget(platform) ? 'target' : null }, ...splitBar(coverage.count(items, platform))));
  for (const name of order) {
    const items = groups.get(name)!;
    let children: HTMLElement[] | null = null;
    const button = h('button', { type: 'button', class: 'plain opener', 'aria-expanded': 'false', onclick: () => {
      const show = button.getAttribute('aria-expanded') !== 'true';
      button.setAttribute('aria-expanded', String(show));
      if (!children) {
        children = [...groupBy(items, (item) => item.op)].map(([op, some]) =>
          h('tr', { class: 'child' }, h('th', { scope: 'row' }, h('code', { class: 'name' }, op || '?'), ` ×${some.length}`), h('td'), ...cells(some), h('td')));
        row.after(...children);
      }
      children.forEach((child) => (child.hidden = !show));
    } }, say(name));
    const row = h('tr', {}, h('th', { scope: 'row' }, button), h('td', {}, effortDots(about.get(name)?.difficulty)), ...cells(items),
      h('td', { class: 'note' }, say(about.get(name)?.alternative ?? '')));
    rows.append(row);
  }
  const last = (title: string, cell: (platform: Platform) => Node | string) => h('tr', { class: 'sum' }, h('th', { scope: 'row', colspan: 2 }, title),
    ...coverage.platforms.map((platform) => h('td', { class: coverage.isTarget(platform) ? 'target' : null }, cell(platform))), h('td'));
  const foot = h('tfoot', {}, last('P0 · P1 · P2', triage), last(W.days, (platform) => h('b', {}, days(platform.effort_days))));
  const head = h('tr', {}, h('th', { scope: 'col' }, W.category), h('th', { scope: 'col' }, W.effort),
    ...coverage.platforms.map((platform) => {
      const role = coverage.isTarget(platform) ? W.platform_target : platform.role === 'source' ? W.platform_source : '';
      const source = (W.sources as Record<string, string>)[platform.source ?? ''] ?? platform.source ?? '';
      return h('th', { scope: 'col', class: coverage.isTarget(platform) ? 'target' : null }, h('bdi', { title: platform.name }, clip(platform.name, 40)), role, h('small', { title: platform.version ?? null }, [source, platform.version && clip(platform.version, 26)].filter(Boolean).join(' · ')));
    }), h('th', { scope: 'col' }, W.alternative));
  return scroller(h('table', { class: 'coverage' }, h('thead', {}, head), rows, foot), W.coverage_title);
}

export function coverageTable(coverage: Coverage): HTMLElement | null {
  const { page, platforms } = coverage;
  if (!platforms.length) return null;
  const used = new Set(platforms.flatMap((platform) => [...coverage.count(coverage.items, platform).keys()]));
  return figure({
    title: W.coverage_title,
    reading: page.reading('coverage', W.coverage_reading),
    legend: states.filter((state) => used.has(state)).map((state) => ({ mark: 'glyph', colour: state, glyph: glyphs[state], text: (W.states as Record<string, string>)[state] })),
    body: [body(coverage)],
    how: W.coverage_how,
    table: () => table(coverage.rows, [
      { title: W.node, get: (row) => page.nameOf(row.node) },
      { title: W.operator, get: (row) => row.op ?? null },
      { title: W.platform, get: (row) => row.platform ?? null },
      { title: W.state, get: (row) => (W.states as Record<string, string>)[row.state ?? ''] ?? row.state ?? null },
      { title: W.reason, get: (row) => (W.reasons as Record<string, string>)[row.reason ?? ''] ?? row.reason ?? null },
      { title: W.detail, get: (row) => (row.detail ? say(row.detail) : null) },
      { title: W.advice, get: (row) => (row.advice ? say(row.advice) : null) },
      { title: W.priority, get: (row) => row.priority ?? null },
    ], { name: 'coverage' }),
  });
}
