// The tools' sentences in another language, as unmoor/workbench/report_language.cpp puts them. A golden file keeps the two alike.
const names = new Set(['id', 'name', 'node', 'op', 'command', 'category', 'block', 'see', 'state', 'file', 'tool', 'version', 'verdict', 'created', 'model', 'path', 'paths',
  'target', 'source', 'dtype', 'runner', 'graph', 'kernel', 'fingerprint', 'samples', 'versions']);
const parts = ['graph', 'scan', 'plan', 'align', 'bench', 'profile', 'doctor'];

function formOf(sentence) {
  const pieces = sentence.split(/\{([^}]*)\}/);
  const between = pieces.filter((_, i) => i % 2 === 0);
  const marks = pieces.filter((_, i) => i % 2 === 1).map((mark) => (/[#@*]$/.test(mark) ? { name: mark.slice(0, -1), kind: mark.at(-1) } : { name: mark, kind: ' ' }));
  return { between, marks };
}

export class Phrases {
  constructor(from, to) {
    this.sentences = Object.keys(from.said).sort().filter((key) => to.said[key]).map((key) => ({ ours: formOf(from.said[key]), theirs: formOf(to.said[key]) }));
    const size = ({ ours }) => Buffer.byteLength(ours.between.join(''));
    this.sentences.sort((a, b) => size(b) - size(a));
  }

  translated(text, depth = 0) {
    if (!text || Buffer.byteLength(text) > 2000 || depth > 4) return null;
    for (const sentence of this.sentences) {
      const found = this.fitted(sentence, text, depth);
      if (found !== null) return found;
    }
    return null;
  }

  fitted({ ours: { between, marks }, theirs }, text, depth) {
    if (!text.startsWith(between[0]) || !text.endsWith(between.at(-1)) || (!marks.length && text !== between[0])) return null;
    const last = text.length - between.at(-1).length;
    let at = between[0].length;
    const told = {};
    for (let i = 0; i < marks.length; i++) {
      const stop = i + 1 === marks.length ? last : text.indexOf(between[i + 1], at + 1);
      if (stop < 0 || stop > last || stop <= at) return null;
      let value = text.slice(at, stop);
      if (marks[i].kind === '#' && !/^[\d.,+\-e]*\d[\d.,+\-e]*$/.test(value)) return null;
      if (marks[i].kind === '@' && value.includes(' ')) return null;
      if (marks[i].kind === '*') value = this.translated(value, depth + 1);
      if (value === null) return null;
      told[marks[i].name] = value;
      at = stop + between[i + 1].length;
    }
    return theirs.between.reduce((out, part, i) => out + (told[theirs.marks[i - 1].name] ?? '') + part);
  }
}

function mapTexts(value, change) {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, names.has(key) ? item : mapTexts(item, change)]));
  return value;
}

export function spokenHead(data, phrases) {
  const head = {};
  for (const [key, value] of Object.entries(data)) {
    if (!parts.includes(key)) head[key] = value;
    else if (value && typeof value === 'object') head[key] = {};
  }
  return mapTexts(head, (text) => phrases.translated(text) ?? text);
}

export function spokenWords(data, words, phrases) {
  const texts = new Set();
  mapTexts(data, (text) => texts.add(text));
  for (const category of data.scan?.categories ?? []) texts.add(category.name);
  for (const category of data.graph?.category ?? []) texts.add(category);
  const said = {};
  for (const text of texts) {
    const other = phrases.translated(text);
    if (other !== null) said[text] = other;
  }
  return { lang: words.lang, script: words.script, said };
}
