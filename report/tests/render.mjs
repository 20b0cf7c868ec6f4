// The same page as render_report in C++ makes, for tests without a C++ build. A golden file keeps the two alike.
import { readFileSync } from 'node:fs';
import { Phrases, spokenHead, spokenWords } from './phrases.mjs';

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);

// {{name}} escaped, {{{name}}} as it is, {{#name}}…{{/name}} for each or if not empty.
export function fill(template, view) {
  let out = '';
  const find = (stack, path) => {
    const [first, second] = path.split('.');
    for (let i = stack.length; i-- > 0; ) {
      const scope = stack[i];
      if (scope && typeof scope === 'object' && first in scope) return second ? scope[first][second] : scope[first];
    }
    return undefined;
  };
  const run = (from, to, stack) => {
    let at = from;
    while (at < to) {
      const open = template.indexOf('{{', at);
      if (open < 0 || open >= to) break;
      out += template.slice(at, open);
      const raw = template[open + 2] === '{';
      const close = template.indexOf('}}', open);
      const tag = template.slice(open + (raw ? 3 : 2), close);
      at = close + (raw ? 3 : 2);
      if (tag[0] === '#') {
        const name = tag.slice(1);
        const end = template.indexOf(`{{/${name}}}`, at);
        const value = find(stack, name);
        for (const item of Array.isArray(value) ? value : value ? [value] : []) run(at, end, [...stack, item]);
        at = end + name.length + 5;
      } else {
        const value = String(find(stack, tag) ?? '');
        out += raw ? value : escape(value);
      }
    }
    out += template.slice(at, to);
  };
  run(0, template.length, [view]);
  return out;
}

const text = (value) => (typeof value === 'string' ? value : '');
const list = (value) => (Array.isArray(value) ? value.filter((item) => item && typeof item === 'object') : []);
const object = (value) => (value && typeof value === 'object' && !Array.isArray(value) ? value : {});

export function viewOf(data, words) {
  const state = (name) => (['ok', 'warn', 'bad'].includes(name) ? name : 'none');
  const figures = list(data.figures);
  const tools = list(data.tools);
  const answers = object(data.answers);
  const verdict = words.verdicts[text(data.verdict)];
  const verdictState = verdict?.state ?? 'none';
  const icon = words.icons[verdictState];
  const model = text(object(data.model).path).split('/').pop();
  const target = text(data.target);
  const entry = (id, question) => {
    const figure = figures.find((item) => item.id === id) ?? {};
    const tool = tools.find((item) => item.name === id) ?? {};
    const failed = tool.state === 'failed';
    const shown = text(object(data.states)[id]) || (failed ? 'bad' : text(figure.state));
    return { id, question, state: state(shown), state_word: words.states[state(shown)], answer: text(answers[id]) === text(data.sentence) ? '' : text(answers[id]), missing: '', command: '',
      key: failed ? words.page.failed : text(figure.value) || text(tool.note) };
  };
  const present = (id) =>
    text(answers[id]) || (data[id] && typeof data[id] === 'object') || (id === 'environment' && text(data.command));
  const sections = words.sections.filter(({ id }) => present(id)).map(({ id, question }) => entry(id, question));
  const missing = tools
    .filter((tool) => tool.state !== 'ran' && !sections.some((section) => section.id === tool.name))
    .map((tool) => ({ id: text(tool.name), question: words.sections.find(({ id }) => id === tool.name)?.question ?? text(tool.name),
      key: tool.state === 'failed' ? words.page.failed : words.page.not_run, command: text(tool.command), note: text(tool.note),
      state: tool.state === 'failed' ? 'bad' : 'none' }));
  const rail = [...sections, ...missing.map((tool) => ({ ...tool, id: `not-run-${tool.id}`, missing: 'yes', state_word: words.states[tool.state] }))];
  const sentence = text(data.sentence) || words.page.no_sentence.replace('{tool}', text(data.tool));
  return {
    lang: words.lang, words: words.page, generator: `Unmoor ${text(data.version)}`.trim(),
    title: [`${icon.mark} ${verdict?.word ?? text(data.tool)}`, [model, target].filter(Boolean).join(' → '), 'Unmoor'].filter(Boolean).join(' · '),
    icon_colour: icon.colour, icon_path: icon.path, model, source: text(data.source), target, dtype: text(data.dtype),
    date: text(data.created).slice(0, 10), badge: verdict?.word ?? '', verdict_state: verdictState, sentence,
    reason: text(data.reason) === sentence ? '' : text(data.reason),
    has_figures: figures.length > 0, has_next: list(data.next).length > 0, has_missing: missing.length > 0,
    figures: figures.map((item) => ({ id: text(item.id), value: text(item.value), label: text(item.label), note: text(item.note),
      state: state(item.state), state_word: words.states[state(item.state)] })),
    next: list(data.next).map((item) => ({ text: text(item.text), command: text(item.command), effect: text(item.effect), see: text(item.see) })),
    sources: list(data.sources).map((item) => Object.fromEntries(['file', 'tool', 'machine', 'date', 'shown', 'left_out'].map((key) => [key, text(item[key])]))),
    has_sources: list(data.sources).length > 0, notes: (Array.isArray(data.notes) ? data.notes : []).filter((note) => typeof note === 'string').map((note) => ({ note })),
    sections, rail, missing_tools: missing,
  };
}

const own = JSON.parse(read('words.json'));

export function renderReport(data, language = 'en') {
  const words = language === 'en' ? own : JSON.parse(read(`words.${language}.json`));
  const foreign = language === 'en' ? null : new Phrases(own, words);
  const view = viewOf(foreign ? spokenHead(data, foreign) : data, words);
  view.csp = read('dist/report.csp').trim();
  view.css = read('dist/report.css');
  view.js = read('dist/report.js');
  const safe = (value) => JSON.stringify(value).replace(/</g, '\\u003c');
  view.json = safe(data);
  view.other_words = foreign ? safe(spokenWords(data, words, foreign)) : '';
  return fill(read('template.html'), view);
}

// The part of a page that is plain HTML, without bundle and data.
export const staticPart = (html) =>
  html.slice(0, html.indexOf('<script type="application/json"')).replace(/<style>[\s\S]*?<\/style>/, '').replace(/sha256-[^']+/, '');
