// What needs no browser: palette, words, lock file, template, golden page.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { palette } from '../palette.mjs';
import { documents } from './documents.mjs';
import { fill, renderReport, staticPart } from './render.mjs';

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

function luminance(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

test('text has a contrast of at least 4.5 in both themes', () => {
  const pairs = [['ink', 'bg'], ['ink', 'surface'], ['ink', 'sunk'], ['ink', 'tint'], ['ink2', 'bg'], ['ink2', 'surface'], ['ink2', 'sunk'], ['ink3', 'bg'], ['ink3', 'surface'], ['ink3', 'sunk'], ['ink3', 'tint'],
    ['accent', 'surface'], ['accent', 'bg'], ['accent', 'sunk'], ['accent', 'tint'], ['ok', 'surface'], ['ok', 'sunk'], ['ok', 'ok-fill'], ['warn', 'bg'], ['warn', 'warn-fill'], ['bad', 'surface'], ['bad', 'tint'], ['bad', 'bad-fill'],
    ...['native', 'constrained', 'expanded', 'fallback', 'unsupported', 'unknown'].map((state) => [`${state}-ink`, state])];
  for (const theme of [0, 1]) for (const [text, ground] of pairs) {
    const value = contrast(palette[text][theme], palette[ground][theme]);
    assert.ok(value >= 4.5, `${text} on ${ground}, theme ${theme}: ${value.toFixed(2)}`);
  }
});

test('marks that must be seen have a contrast of at least 3', () => {
  for (const theme of [0, 1]) for (const mark of ['target', 'host', 'copy', 'x4', 'x5', 'unsupported', 'matmul', 'layout', 'other']) {
    const value = contrast(palette[mark][theme], palette.surface[theme]);
    assert.ok(value >= (mark === 'host' ? 2.8 : 3), `${mark}, theme ${theme}: ${value.toFixed(2)}`);
  }
});

test('every colour that is used is in the palette', () => {
  const files = ['style.css', ...readdirSync(new URL('../src', import.meta.url), { recursive: true }).filter((name) => String(name).endsWith('.ts'))];
  for (const file of files) for (const [, name] of read(`src/${file}`).matchAll(/var\(--([a-z][a-z0-9-]*)[),]/g))
    assert.ok(name in palette || ['c', 'g', 'i', 's', 'm', 'edge'].includes(name), `${file}: ${name}`);
});

test('the lock file names no host and pins every version', () => {
  assert.doesNotMatch(read('package-lock.json'), /"resolved"|https?:/);
  const { dependencies, devDependencies } = JSON.parse(read('package.json'));
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) assert.match(version, /^\d+\.\d+\.\d+$/, name);
});

test('words are all used, and all that is used is there', () => {
  const { script } = JSON.parse(read('words.json'));
  const code = readdirSync(new URL('../src', import.meta.url), { recursive: true }).filter((name) => String(name).endsWith('.ts')).map((name) => read(`src/${name}`)).join('\n');
  for (const word of Object.keys(script)) assert.match(code, new RegExp(`\\bW\\.${word}\\b`), `${word} is not used`);
});

test('files stay under 400 lines', () => {
  const names = readdirSync(new URL('..', import.meta.url), { recursive: true }).map(String).filter((name) => /\.(ts|mjs|css|html)$/.test(name) && !/node_modules|dist/.test(name));
  assert.ok(names.length > 20);
  for (const name of names) assert.ok(read(name).split('\n').length <= 400, name);
});

test('the template language escapes and repeats', () => {
  assert.equal(fill('{{a}} {{{a}}} {{#b}}[{{c}}{{a}}]{{/b}}{{#none}}x{{/none}}', { a: '<&"\'', b: [{ c: 1 }, { c: '{{a}}' }], none: '' }),
    '&lt;&amp;&quot;&#39; <&"\' [1&lt;&amp;&quot;&#39;][{{a}}&lt;&amp;&quot;&#39;]');
});

// The golden page holds the C++ and this renderer together: tests/unit/report_html reads the same two files.
test('the plain part of a page is the golden one', () => {
  const data = documents.hostile();
  for (const key of ['graph', 'scan', 'plan', 'align', 'bench', 'profile', 'doctor']) data[key] = key === 'doctor' ? undefined : {};
  data.answers.scan = data.answers.scan.replace('\u2028', ' ');
  const json = JSON.stringify(data, null, 1) + '\n';
  const html = staticPart(renderReport(JSON.parse(json)));
  if (process.env.UPDATE_GOLDEN) {
    writeFileSync(new URL('golden/page.json', import.meta.url), json);
    writeFileSync(new URL('golden/page.html', import.meta.url), html);
  }
  assert.equal(json, read('tests/golden/page.json'));
  assert.equal(html, read('tests/golden/page.html'));
});
