import { command, h, nodeHash, pill } from './dom';
import { column, list, num, records, type Metrics } from './data';
import { clip, digits, metric, percent, time, times } from './format';
import { levelOf, type Page } from './page';
import { statePill, stateOf } from './states';
import { quoted } from './shell';
import { reasonText, whyNot } from './sections/plan';
import { verdictKind } from './sections/align';
import { W, fill, say } from './words';

type Fact = [string, Node | string | null];

function facts(title: string, rows: Fact[]): HTMLElement | null {
  const known = rows.filter((row) => row[1] !== null && row[1] !== '');
  return known.length ? h('section', {}, h('h3', {}, title), h('dl', {}, ...known.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value!)]))) : null;
}

function places(page: Page, node: number): HTMLElement | null {
  const { doc, graph } = page;
  const device = page.deviceOf(node);
  const rows = records(doc.scan?.nodes).filter((row) => graph.find(row.node) === node);
  return facts(W.where, [
    [W.device, device >= 0 ? page.devices[device] : null],
    [W.kernel, doc.plan?.kernel?.[node] || null],
    [W.why, page.refused(node) ? whyNot(page, node) : doc.plan?.choice?.[node] && page.role(device) !== 'target' ? W.by_choice : null],
    ...rows.flatMap((row): Fact[] => [[row.platform ?? W.platform, statePill(stateOf(row.state))],
      ['', reasonText(row.reason, row.detail, row.advice) || null]]),
  ]);
}

function refusalList(page: Page, node: number): HTMLElement | null {
  const refusals = records(page.doc.plan?.refusals?.[node]);
  if (!refusals.length) return null;
  return h('details', {}, h('summary', {}, fill(W.all_refusals, { n: refusals.length })), h('ul', { class: 'plainlist' }, ...refusals.slice(0, 50).map((item) =>
    h('li', {}, h('b', {}, [item.device, item.kernel].filter(Boolean).join(' · ')), ' ', reasonText(item.reason, item.detail)))));
}

const metricRow = (part: string, metrics: Metrics | undefined): Fact[] => Object.entries(metrics ?? {}).filter(([, value]) => num(value) !== null).slice(0, 8)
  .map(([name, value]): Fact => [`${part} ${name}`, metric(name, num(value))]);

function numbers(page: Page, node: number): HTMLElement | null {
  const { doc, graph, limits } = page;
  const align = doc.align;
  if (!align) return null;
  const single = column(align.single, graph.size)?.[node] ?? null;
  const entire = column(align.entire, graph.size)?.[node] ?? null;
  const far = limits.single?.[node] ?? null;
  const values = records(align.values).filter((value) => graph.find(value.node) === node).slice(0, 4);
  const rows: Fact[] = [
    [W.axis_single, single === null ? null : digits(single)], [W.axis_entire, entire === null ? null : digits(entire)],
    [limits.kind === 'excess' ? W.excess : W.over, far === null ? null : pill(levelOf(far, limits), times(far))],
    [W.hidden, list(align.hidden).includes(node) ? W.yes : null],
  ];
  for (const value of values) {
    rows.push([clip(value.name ?? W.verdict, 40), value.verdict ? pill(verdictKind[value.verdict] ?? 'none', (W.value_verdicts as Record<string, string>)[value.verdict] ?? value.verdict) : null]);
    rows.push(...metricRow(W.single, value.single), ...metricRow(W.entire, value.entire));
  }
  return facts(W.numbers, rows);
}

function timing(page: Page, node: number): HTMLElement | null {
  const ms = page.ms?.[node] ?? null;
  if (ms === null) return null;
  const rank = page.ms!.filter((other) => other !== null && other > ms).length + 1;
  return facts(W.time, [[W.one_run, time(ms)], [W.share, page.total ? percent(ms / page.total) : null], [W.rank, fill(W.of, { n: rank, all: page.graph.size })]]);
}

export class Card {
  private readonly root = h('aside', { class: 'card', tabindex: -1, hidden: true, 'aria-labelledby': 'card-title' });
  private back: Element | null = null;

  constructor(private readonly page: () => Page) {
    document.body.append(this.root);
    addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !this.root.hidden) this.close();
    });
  }

  show(node: number, from: Element | null) {
    const page = this.page();
    const { graph, doc } = page;
    if (this.root.hidden) this.back = from ?? document.activeElement;
    const name = graph.name[node];
    const model = quoted(doc.model?.path ?? 'MODEL');
    const step = (to: number, label: string) => h('button', { type: 'button', disabled: to < 0 || to >= graph.size, onclick: () => page.open(to, null) }, label);
    const target = doc.target ? ` --on ${doc.target}` : '';
    const align = doc.align ? ` --reference ${quoted(doc.align.reference ?? 'reference')} --target ${quoted(doc.align.target ?? doc.target ?? 'TARGET')}` : '';
    this.root.replaceChildren(
      h('button', { type: 'button', class: 'close', onclick: () => this.close() }, W.close),
      h('h2', { id: 'card-title', class: 'name' }, name),
      h('p', { class: 'note' }, [graph.op[node], say(graph.category[node]), fill(W.node_of, { n: node + 1, all: graph.size })].filter(Boolean).join(' · ')),
      ...[places(page, node), refusalList(page, node), numbers(page, node), timing(page, node)].filter((part): part is HTMLElement => part !== null),
      h('section', {}, h('h3', {}, W.look_closer), doc.align ? command(`unmoor align ${model}${align} --node ${quoted(name)}`) : null, command(`unmoor run ${model}${target} --explain --node ${quoted(name)}`)),
      h('p', { class: 'steps' }, step(node - 1, W.previous), step(node + 1, W.next)));
    const anchor = from?.closest('.figure, section') ?? null;
    const before = anchor?.getBoundingClientRect().top ?? 0;
    this.root.hidden = false;
    this.root.scrollTop = 0;
    document.body.classList.add('with-card');
    if (anchor) requestAnimationFrame(() => scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: 'instant' as ScrollBehavior }));
    page.view.select(node);
    setHash(nodeHash(name));
    this.root.focus({ preventScroll: true });
  }

  close() {
    this.root.hidden = true;
    document.body.classList.remove('with-card');
    this.page().view.select(-1);
    setHash('');
    if (this.back instanceof HTMLElement || this.back instanceof SVGElement) this.back.focus({ preventScroll: true });
  }
}

function setHash(hash: string) {
  try {
    history.replaceState(null, '', hash || location.pathname + location.search);
  } catch {
    // Some viewers forbid it; the card works without.
  }
}
