import { h, nodeLinks, pill } from '../dom';
import { groupBy, num, records, type ScanNode } from '../data';
import { percent } from '../format';
import { bar, bars } from '../bars';
import { figure } from '../figure';
import type { Page } from '../page';
import { statePill, states, stateOf, type State } from '../states';
import { count, fill, say, W } from '../words';
import { Coverage, coverageTable, days } from './coverage';

// P0 and P1, nodes with the same story as one entry, the target's first.
function triage(coverage: Coverage): HTMLElement | null {
  const { page } = coverage;
  const urgent = coverage.rows.filter((row) => row.priority === 'P0' || row.priority === 'P1');
  if (!urgent.length) return null;
  const groups = groupBy(urgent, (row) => JSON.stringify([row.priority, row.op, row.platform, row.state, row.reason, row.detail]));
  const targets = new Set(coverage.platforms.filter((platform) => coverage.isTarget(platform)).map((platform) => platform.name));
  const rank = (row: ScanNode) => (targets.has(row.platform ?? '') ? 0 : 2) + (row.priority === 'P0' ? 0 : 1);
  const ordered = [...groups.values()].sort((a, b) => rank(a[0]) - rank(b[0]) || b.length - a.length);
  const item = (rows: ScanNode[]) => {
    const row = rows[0];
    const why = [row.detail ? say(row.detail) : (W.reasons as Record<string, string>)[row.reason ?? ''] || row.reason, row.advice ? say(row.advice) : ''].filter(Boolean).join('; ');
    return h('li', { class: row.priority === 'P0' ? 'bad' : 'warn' },
      h('p', {}, pill(row.priority === 'P0' ? 'bad' : 'warn', row.priority!), ' ', h('b', { class: 'name' }, row.op ?? '?'), ' ',
        fill(W.on_platform, { platform: row.platform ?? '?' }), ` · ${count(rows.length, W.nodes)} `, statePill(stateOf(row.state))),
      h('p', { class: 'note' }, why ? `${why}: ` : '', nodeLinks(rows.map((one) => page.nameOf(one.node)), page.known)));
  };
  const items = ordered.map(item);
  const rest = items.slice(12);
  return figure({
    title: W.triage_title,
    reading: page.reading('triage', W.triage_reading),
    wide: false,
    body: [h('ul', { class: 'findings' }, ...items.slice(0, 12)),
      rest.length ? h('details', { class: 'data' }, h('summary', {}, fill(W.and_more, { n: rest.length })), h('ul', { class: 'findings' }, ...rest)) : null],
  });
}

function effort(coverage: Coverage): HTMLElement | null {
  const { page, platforms } = coverage;
  const items = records(page.doc.scan?.effort).map((item) => ({ label: say(item.what ?? '?'), sub: say(item.why ?? ''), low: num(item.low), high: num(item.high) }));
  const target = platforms.find((platform) => coverage.isTarget(platform));
  const perPlatform = platforms.map((platform) => ({ label: platform.name, sub: '', low: num(platform.effort_days?.[0]), high: num(platform.effort_days?.[1]) }));
  const rows = (items.length ? items : perPlatform).filter((row) => row.low !== null && row.high !== null);
  const most = Math.max(...rows.map((row) => row.high!), 0);
  if (!(most > 0) || !Number.isFinite(most)) return null;
  const total = target ? days(target.effort_days) : '';
  return figure({
    title: items.length && target ? fill(W.effort_on, { platform: target.name, days: total }) : W.effort_title,
    reading: page.reading('effort', W.effort_reading),
    wide: false,
    body: [bars(rows.map((row) => ({
      label: row.label,
      sub: row.sub,
      value: days([row.low, row.high]),
      marks: [bar(0, 1, 'sunk', 12), bar(row.low! / most, Math.max(row.high! / most, row.low! / most + 0.01), 'accent', 12)],
    })), null, W.effort_title)],
  });
}

interface Refused {
  node: string;
  op: string;
  reason: string;
  state: State;
}

// What the target refuses or takes only with conditions: the scan's word, or the plan's where there was no scan.
function refusedNodes(coverage: Coverage): Refused[] {
  const { page } = coverage;
  const target = coverage.platforms.find((platform) => coverage.isTarget(platform));
  const scanned = target ? coverage.rows.filter((row) => row.platform === target.name && row.state !== 'native') : [];
  if (scanned.length) return scanned.map((row) => ({ node: page.nameOf(row.node), op: row.op ?? '', reason: row.reason || W.no_reason, state: stateOf(row.state) }));
  return page.graph.name.flatMap((node, i) => {
    if (!page.refused(i)) return [];
    const refusals = records(page.doc.plan?.refusals?.[i]);
    const own = refusals.find((item) => page.role(page.deviceIndex(item.device ?? '')) === 'target') ?? refusals[0];
    return [{ node, op: page.graph.op[i], reason: own?.reason || W.no_reason, state: 'fallback' as State }];
  });
}

export function refusals(coverage: Coverage): HTMLElement | null {
  const { page } = coverage;
  const groups = groupBy(refusedNodes(coverage), (item) => item.reason);
  if (!groups.size) return null;
  const timed = page.ms !== null && page.total > 0;
  const all = timed ? page.total : Math.max(1, coverage.items.length);
  const weight = (item: Refused) => {
    const ms = timed ? page.ms![page.graph.find(item.node)] : 1;
    return typeof ms === 'number' && Number.isFinite(ms) ? ms : 0;
  };
  const rows = [...groups].map(([reason, items]) => ({ reason, items, share: items.reduce((sum, item) => sum + weight(item), 0) / all }))
    .sort((a, b) => b.share - a.share);
  const most = Math.max(...rows.map((row) => row.share), 1e-9);
  const ops = (items: Refused[]) => {
    const names = [...new Set(items.map((item) => item.op))].filter(Boolean);
    return names.length > 4 ? `${names.slice(0, 4).join(', ')} ${fill(W.and_more, { n: names.length - 4 })}` : names.join(', ');
  };
  const target = page.doc.target || coverage.platforms.find((platform) => coverage.isTarget(platform))?.name || W.roles.target;
  return figure({
    title: fill(W.refusals_title, { platform: target }),
    reading: page.reading('refusals', timed ? W.refusals_time : W.refusals_nodes),
    body: [bars(rows.map((row) => ({
      label: h('span', {}, (W.reasons as Record<string, string>)[row.reason] ?? row.reason),
      sub: h('span', {}, ops(row.items), h('details', {}, h('summary', {}, count(row.items.length, W.nodes)), nodeLinks(row.items.map((item) => item.node), page.known, 12))),
      strong: true,
      value: h('span', {}, ...states.filter((state) => row.items.some((item) => item.state === state))
        .flatMap((state) => [statePill(state, row.items.filter((item) => item.state === state).length), ' ']), timed ? fill(W.of_time, { share: percent(row.share) }) : percent(row.share)),
      marks: [bar(0, 1, 'sunk'), bar(0, row.share / most, 'accent')],
    })), null, W.refusals_title)],
  });
}

export function scan(page: Page): (HTMLElement | null)[] {
  const coverage = new Coverage(page);
  return [coverageTable(coverage), triage(coverage), effort(coverage), refusals(coverage)];
}
