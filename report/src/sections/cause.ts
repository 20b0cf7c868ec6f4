import { scaleLog } from 'd3-scale';
import { command, h, nodeLink, s } from '../dom';
import { at, bars, dot, span, type BarRow, type Scale } from '../bars';
import { list, num, records, type Cause, type Raw, type Value } from '../data';
import { digits, power, times } from '../format';
import { figure } from '../figure';
import type { Page } from '../page';
import { quoted } from '../shell';
import { table } from '../table';
import { fill, say, W } from '../words';
import { planeMap } from './plane';

interface Row {
  ids: string[];
  bits: number | null;
  excess: number | null;
}

const shownRows = 10;
const green = 3; // Up to here rounding explains the rest.
const severity = ['explained', 'undefined', 'as-baseline', 'suspicious', 'differ'];

const excessOf = (value: Value): number | null => num(value.single?.excess_e) ?? num(value.entire?.excess_e);
const worst = (value: number | null) => (value === null ? -1 : Number.isNaN(value) ? Infinity : value);
const nameOf = (page: Page, value: Value) => (value.node === undefined ? value.name ?? '?' : page.nameOf(value.node));
const pairOf = (cause: Cause) => (cause.with ? `${cause.id}+${cause.with}` : cause.id ?? '?');

// Hypotheses with the most evidence first; those that the inputs cannot tell from the cause share its row, and a pair is one name.
function rowsOf(cause: Cause): Row[] {
  const all = records(cause.hypotheses).map((one): Row => ({ ids: [String(one.id ?? '?')], bits: num(one.bits), excess: num(one.excess) }));
  const same = new Set([pairOf(cause), ...list(cause.also).map(String)]);
  const first: Row = { ids: [...same], bits: num(cause.bits), excess: num(cause.excess) };
  const rest = all.filter((row) => !same.has(row.ids[0]));
  return [first, ...rest.sort((a, b) => (b.bits ?? -Infinity) - (a.bits ?? -Infinity))];
}

// Excess on a log axis that holds the green zone and every finite value, in at most ten decades.
function scaleOf(values: (number | null)[]): Scale {
  const finite = values.filter((value): value is number => value !== null && Number.isFinite(value) && value > 0);
  const high = 10 ** Math.ceil(Math.log10(Math.max(10, ...finite)));
  const low = Math.max(high / 1e10, 10 ** Math.floor(Math.log10(Math.min(1, ...finite))));
  const log = scaleLog().domain([low, high]).range([0.04, 0.92]).clamp(true);
  const [first, last] = [Math.round(Math.log10(low)), Math.round(Math.log10(high))];
  const step = Math.max(1, Math.ceil((last - first) / 5));
  const ticks = [];
  for (let exponent = first; exponent <= last; exponent += step) {
    const text = exponent >= -2 && exponent <= 4 ? digits(10 ** exponent) : power(exponent);
    ticks.push({ at: log(10 ** exponent), label: `${text} ×`, strong: exponent === 0 });
  }
  return Object.assign((value: number) => log(value <= 0 ? low : value), { ticks });
}

function lollipop(excess: number | null, scale: Scale, colour: string): SVGElement[] {
  if (excess === null) return [];
  if (!Number.isFinite(excess)) return [s('svg', { x: '100%', width: 1, height: 20, overflow: 'visible' }, s('path', { d: 'M-2 10l-9-6v12z', fill: `var(--${colour})` }))];
  return [span(0, scale(excess), colour, 2), dot(scale(excess), colour, 5)];
}

const bitsText = (bits: number | null) => (bits === null ? '' : ` · ${fill(W.cause_bits, { bits: digits(bits) })}`);

function lollipops(value: Value, cause: Cause): HTMLElement {
  const rows = rowsOf(cause);
  const now = excessOf(value);
  const scale = scaleOf([now, ...rows.map((row) => row.excess)]);
  const zone = () => [s('rect', { x: 0, width: at(scale(green)), y: 0, height: 20, fill: 'var(--ok-fill)' })];
  const row = (label: Node | string, excess: number | null, bits: number | null, colour: string, strong = false): BarRow =>
    ({ label, strong, value: h('span', {}, h('b', {}, times(excess)), bitsText(bits)), marks: lollipop(excess, scale, colour) });
  const named = (one: Row) => h('span', {}, ...one.ids.flatMap((id, i) => [i ? `, ${W.cause_or} ` : '', h('code', { class: 'name' }, id)]));
  return bars([
    ...(now === null ? [] : [row(W.cause_now, now, null, now <= green ? 'ok' : 'bad')]),
    ...rows.slice(0, shownRows).map((one, i) => row(named(one), one.excess, one.bits, i === 0 ? 'accent' : one.excess !== null && one.excess <= green ? 'ok' : 'ink3', i === 0)),
  ], scale, W.cause_title, zone);
}

function lookCloser(page: Page, node: string): HTMLElement {
  const align = page.doc.align!;
  const model = quoted(page.doc.model?.path ?? 'MODEL');
  return command(`unmoor align ${model} --reference ${quoted(align.reference ?? 'reference')} --target ${quoted(align.target ?? page.doc.target ?? 'TARGET')} --node ${quoted(node)}`);
}

function told(page: Page, value: Value): HTMLElement[] {
  const name = nameOf(page, value);
  const link = [nodeLink(name, page.known(name)), value.op ? ` (${value.op}): ` : ': '];
  const cause = value.cause;
  if (!cause) return [h('p', { class: 'sentence' }, ...link, W.cause_none), lookCloser(page, name)];
  const also = list(cause.also).map(String);
  return [
    h('p', { class: 'sentence' }, ...link, say(String(cause.text ?? ''))),
    ...(cause.advice ? [h('p', { class: 'advice' }, say(String(cause.advice)))] : []),
    ...(also.length ? [h('p', { class: 'note' }, fill(W.cause_also, { ids: also.join(', ') }))] : []),
    lollipops(value, cause),
    lookCloser(page, name),
  ];
}

// What is told of a node, and beside it how its error looks.
function content(page: Page, value: Value): HTMLElement[] {
  const map = value.plane ? planeMap(value.plane) : null;
  const parts = told(page, value);
  return map ? [h('div', { class: 'beside' }, h('div', { class: 'cause' }, ...parts), map)] : parts;
}

function dataTable(value: Value): HTMLElement {
  const number = (raw: Raw) => num(raw);
  return table(records(value.cause?.hypotheses), [
    { title: W.cause_hypothesis, get: (one) => String(one.id ?? '?') },
    { title: W.excess, get: (one) => number(one.excess), show: (one) => times(number(one.excess)) },
    { title: W.cause_evidence, get: (one) => number(one.bits) },
  ], { name: 'hypotheses' });
}

// The cause of the worst finding; those of the others are closed below it, and made when they are opened.
export function causes(page: Page): HTMLElement | null {
  const found = records(page.doc.align?.values).filter((value) => value.cause || value.plane)
    .sort((a, b) => severity.indexOf(b.verdict ?? '') - severity.indexOf(a.verdict ?? '') || worst(excessOf(b)) - worst(excessOf(a)) || 0);
  if (!found.length) return null;
  const first = found[0];
  const others = found.slice(1).map((value) => {
    const name = nameOf(page, value);
    const details = h('details', { class: 'data' }, h('summary', {}, h('span', { class: 'name' }, name), value.cause ? ` · ${pairOf(value.cause)}` : ''));
    details.addEventListener('toggle', () => {
      if (details.open && details.childElementCount === 1) details.append(...content(page, value));
    });
    return details;
  });
  const kept = others.slice(0, 50);
  const cut = num(page.doc.align?.planes_left_out);
  return figure({
    title: first.cause ? W.cause_title : W.plane_title,
    reading: page.reading('cause', first.cause ? W.cause_reading : W.plane_reading),
    legend: first.cause ? [{ mark: 'box', colour: 'ok-fill', text: fill(W.cause_green, { most: green }) }] : [],
    body: [h('div', { class: 'cause' }, ...content(page, first)),
      others.length ? h('div', { class: 'cause others' }, h('h4', {}, fill(W.cause_others, { n: others.length })), ...kept,
        others.length > kept.length ? h('p', { class: 'note' }, fill(W.cause_cut, { n: others.length - kept.length })) : null) : null,
      cut ? h('p', { class: 'note' }, fill(W.plane_cut, { n: cut })) : null],
    table: first.cause ? () => dataTable(first) : undefined,
    how: first.cause ? `${W.cause_how} ${W.plane_how}` : W.plane_how,
  });
}
