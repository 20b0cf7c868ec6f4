import { scaleLinear, scaleLog } from 'd3-scale';
import { h, s } from '../dom';
import { list, num, records, type Raw, type Run } from '../data';
import { bytes, digits, thousandths, time } from '../format';
import { at, bar, bars, dot, rule, span, type Scale } from '../bars';
import { figure } from '../figure';
import type { Page } from '../page';
import { table } from '../table';
import { fill, say, W } from '../words';

const good = (value: Raw): number | null => {
  const number = num(value);
  return number !== null && Number.isFinite(number) && number >= 0 ? number : null;
};

// Zero is always the start of a bar.
function fromZero(most: number, unit: (value: number) => string): Scale {
  const scale = scaleLinear().domain([0, most || 1]).range([0, 1]);
  return Object.assign((value: number) => scale(value), { ticks: scale.ticks(4).map((value) => ({ at: scale(value), label: unit(value) })) });
}

function nameOf(run: Run, runs: Run[]): string {
  const same = runs.filter((other) => other.runner === run.runner).length > 1;
  return same ? fill(W.runner_batch, { runner: run.runner ?? '?', batch: String(run.batch ?? '?') }) : run.runner ?? '?';
}

function isTarget(page: Page, run: Run): boolean {
  return Boolean(page.doc.target) && (run.runner ?? '').split(/[\s:]/)[0] === page.doc.target!.split(':')[0];
}

function warm(page: Page, runs: Run[]): HTMLElement | null {
  const rows = runs.filter((run) => good(run.warm?.p50) !== null);
  if (!rows.length) return null;
  const ends = rows.flatMap((run) => [run.warm!.p50, run.warm!.p90, run.warm!.p99].map(good)).filter((value): value is number => value !== null);
  const scale = fromZero(Math.max(...ends), (value) => time(value));
  const spreads = rows.map((run) => {
    const p50 = good(run.warm!.p50)!;
    return list(run.warm!.samples).map(num).filter((value): value is number => value !== null && Number.isFinite(value) && p50 > 0).map((value) => (value / p50 - 1) * 100);
  });
  const sorted = spreads.flat().sort((a, b) => a - b);
  const low = Math.max(-50, Math.min(-2, sorted[Math.floor(sorted.length * 0.01)] ?? 0));
  const high = Math.min(200, Math.max(5, sorted[Math.floor(sorted.length * 0.99)] ?? 0));
  const spread = scaleLinear().domain([low, high]).range([0.02, 0.98]).clamp(true);
  const place: Scale = Object.assign((value: number) => spread(value), { ticks: spread.ticks(3).map((value) => ({ at: spread(value), label: `${value > 0 ? '+' : ''}${digits(value)} %`, strong: value === 0 })) });
  const bodyRows = rows.map((run) => {
    const { p50, p90, p99 } = { p50: good(run.warm!.p50)!, p90: good(run.warm!.p90), p99: good(run.warm!.p99) };
    const marks: SVGElement[] = [bar(0, scale(p50), isTarget(page, run) ? 'target' : 'arithmetic', 13)];
    const far = p99 ?? p90;
    if (far !== null) marks.push(span(scale(p50), scale(far), 'ink'));
    if (p90 !== null) marks.push(rule(scale(p90), 'ink', 6, 14));
    if (p99 !== null) marks.push(rule(scale(p99), 'ink', 4, 16));
    return { label: nameOf(run, runs), strong: isTarget(page, run), value: h('b', {}, time(p50)), marks };
  });
  const cloud = rows.map((run, r) => ({
    label: nameOf(run, runs),
    value: spreads[r].length ? fill(W.runs_count, { n: spreads[r].length }) : '–',
    marks: [s('path', { class: 'cloud', d: '' }), ...spreads[r].slice(0, 400).map((value, i) => s('circle', { cx: at(place(value)), cy: 10 + ((i * 7) % 11) - 5, r: 1.8, fill: 'var(--ink2)', opacity: 0.7 }))],
  }));
  return figure({
    title: W.warm_title,
    reading: page.reading('warm', W.warm_reading),
    body: [h('div', { class: 'pair' }, bars(bodyRows, scale, W.warm_title),
      sorted.length ? h('div', {}, h('p', { class: 'small' }, W.spread), bars(cloud, place, W.spread)) : null)],
    table: () => table(rows, [
      { title: W.runner, get: (run) => run.runner ?? null },
      { title: W.batch, get: (run) => num(run.batch) },
      { title: W.threads, get: (run) => num(run.threads) },
      ...(['count', 'p50', 'p90', 'p99', 'min', 'mean', 'cv'] as const).map((key) => ({ title: key, get: (run: Run) => num(run.warm?.[key]) })),
      { title: W.peak, get: (run) => num(run.peak_bytes), show: (run) => bytes(num(run.peak_bytes)) },
    ], { name: 'warm' }),
  });
}

function cold(page: Page, runs: Run[]): HTMLElement | null {
  const parts = ['load_ms', 'prepare_ms', 'first_ms'] as const;
  const rows = runs.map((run) => ({ run, parts: parts.map((part) => good(run[part])) })).filter((row) => row.parts.some((value) => value !== null));
  if (!rows.length) return null;
  const total = (row: (typeof rows)[number]) => row.parts.reduce((sum: number, value) => sum + (value ?? 0), 0);
  const scale = fromZero(Math.max(...rows.map(total)), (value) => time(value));
  return figure({
    title: W.cold_title,
    reading: page.reading('cold', W.cold_reading),
    legend: W.cold_parts.map((text, i) => ({ mark: 'box', colour: `cold${i}`, text })),
    body: [bars(rows.map((row) => {
      let start = 0;
      const marks = row.parts.map((value, i) => {
        const rect = bar(scale(start), scale(start + (value ?? 0)), `cold${i}`, 14);
        start += value ?? 0;
        return rect;
      });
      return { label: nameOf(row.run, runs), strong: isTarget(page, row.run), value: h('b', {}, time(total(row))), marks };
    }), scale, W.cold_title)],
    table: () => table(rows, [
      { title: W.runner, get: (row) => nameOf(row.run, runs) },
      ...W.cold_parts.map((title, i) => ({ title, get: (row: (typeof rows)[number]) => row.parts[i], show: (row: (typeof rows)[number]) => time(row.parts[i]) })),
    ], { name: 'cold' }),
  });
}

// Log axis from half to double; beyond it an arrow and the number. What touches the grey band is no difference.
function ratios(page: Page): HTMLElement | null {
  const rows = records(page.doc.bench?.ratios).filter((ratio) => good(ratio.median) !== null);
  if (!rows.length) return null;
  const log = scaleLog().domain([0.5, 2]).range([0.03, 0.97]).clamp(true);
  const scale: Scale = Object.assign((value: number) => log(value), { ticks: [0.5, 0.7, 1, 1.4, 2].map((value) => ({ at: log(value), label: value === 1 ? W.same : `${value}×`, strong: value === 1 })) });
  const back = () => [s('rect', { x: at(log(0.98)), width: at(log(1.02) - log(0.98)), y: 0, height: 20, fill: 'var(--band)' })];
  const bodyRows = rows.map((ratio) => {
    const [median, low, high] = [good(ratio.median)!, good(ratio.low), good(ratio.high)];
    const same = (low ?? median) <= 1.02 && (high ?? median) >= 0.98;
    const colour = same ? 'ink2' : median < 1 ? 'ok' : 'bad';
    const off = median < 0.5 || median > 2;
    const marks: SVGElement[] = [];
    if (off) {
      const side = s('svg', { x: median < 1 ? '0%' : '100%', width: 1, height: 20, overflow: 'visible' }, s('path', { d: median < 1 ? 'M2 10l9-6v12z' : 'M-2 10l-9-6v12z', fill: `var(--${colour})` }));
      marks.push(side);
    } else {
      if (low !== null && high !== null) marks.push(span(log(low || 0.5), log(high || 0.5), colour, 2), rule(log(low || 0.5), colour, 6, 14), rule(log(high || 0.5), colour, 6, 14));
      marks.push(dot(log(median), colour, 4, ratio.unpaired === true));
    }
    const word = same ? W.ratio_same : median < 1 ? W.ratio_faster : W.ratio_slower;
    return {
      label: fill(W.ratio_label, { a: ratio.a ?? '?', b: ratio.b ?? '?' }),
      sub: `${word}${ratio.unpaired ? `, ${W.unpaired}` : ''}`,
      value: `${thousandths(median)}${low !== null && high !== null ? ` (${thousandths(low)} – ${thousandths(high)})` : ''}`,
      marks,
    };
  });
  return figure({
    title: W.ratio_title,
    reading: page.reading('ratio', W.ratio_reading),
    body: [bars(bodyRows, scale, W.ratio_title, back)],
    table: () => table(rows, [
      { title: 'a', get: (ratio) => ratio.a ?? null },
      { title: 'b', get: (ratio) => ratio.b ?? null },
      { title: W.median, get: (ratio) => num(ratio.median) },
      { title: W.low, get: (ratio) => num(ratio.low) },
      { title: W.high, get: (ratio) => num(ratio.high) },
    ], { name: 'ratios' }),
  });
}

function warnings(page: Page): HTMLElement | null {
  const texts = list(page.doc.bench?.warnings).map((item) => (typeof item === 'string' ? item : String((item as { text?: string }).text ?? JSON.stringify(item))));
  return texts.length ? h('ul', { class: 'warnings' }, ...texts.map((text) => h('li', {}, h('b', {}, W.warning), ' ', say(text)))) : null;
}

export function bench(page: Page): (HTMLElement | null)[] {
  const runs = records(page.doc.bench?.runs);
  return [warnings(page), warm(page, runs), cold(page, runs), ratios(page)];
}
