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

// Colours as people see them who lack one kind of cone: Machado, Oliveira and Fernandes 2009, at full severity, on linear light.
const sights = {
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const linear = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, factor, i) => sum + factor * vector[i], 0));
// OKLab, after Ottosson 2020.
function oklab(light) {
  const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], light.map((c) => Math.max(0, c))).map(Math.cbrt);
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones);
}
const distance = (a, b, sight) => 100 * Math.hypot(...oklab(times(sight, linear(a))).map((x, i) => x - oklab(times(sight, linear(b)))[i]));

test('colours of a group can be told apart by people who see fewer colours', () => {
  const groups = { states: ['native', 'constrained', 'expanded', 'fallback', 'unsupported', 'unknown'], categories: ['matmul', 'attention', 'convolution', 'normalization', 'activation', 'arithmetic', 'layout', 'other'],
    devices: ['target', 'host', 'third', 'copy'], sides: ['minus', 'x0', 'plus'] };
  const least = { states: 6.6, categories: 7.8, devices: 8, sides: 20 };
  for (const [group, names] of Object.entries(groups)) for (const theme of [0, 1]) for (const [sight, matrix] of Object.entries(sights)) {
    names.forEach((a, i) => names.slice(i + 1).forEach((b) => {
      const found = distance(palette[a][theme], palette[b][theme], matrix);
      assert.ok(found >= least[group], `${a} and ${b}, theme ${theme}, ${sight}: ${found.toFixed(1)}`);
    }));
  }
});

test('classes of excess move steadily away from the ground', () => {
  for (const theme of [0, 1]) {
    const light = ['x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6'].map((name) => oklab(linear(palette[name][theme]))[0]);
    for (let i = 1; i < light.length; i++) assert.ok(theme ? light[i] > light[i - 1] : light[i] < light[i - 1], `x${i}, theme ${theme}`);
    for (const sight of Object.values(sights)) for (let i = 1; i < light.length; i++) {
      const found = distance(palette[`x${i - 1}`][theme], palette[`x${i}`][theme], sight);
      assert.ok(found >= 4.7, `x${i - 1} and x${i}, theme ${theme}: ${found.toFixed(1)}`);
    }
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
  data.next.push(...documents.spoken().next);
  data.figures.push(documents.spoken().figures[2]);
  for (const key of ['graph', 'scan', 'plan', 'align', 'bench', 'profile', 'doctor']) data[key] = key === 'doctor' ? undefined : {};
  data.answers.scan = data.answers.scan.replace('\u2028', ' ');
  const json = JSON.stringify(data, null, 1) + '\n';
  const html = staticPart(renderReport(JSON.parse(json)));
  const other = staticPart(renderReport(JSON.parse(json), 'zh'));
  if (process.env.UPDATE_GOLDEN) {
    writeFileSync(new URL('golden/page.json', import.meta.url), json);
    writeFileSync(new URL('golden/page.html', import.meta.url), html);
    writeFileSync(new URL('golden/page.zh.html', import.meta.url), other);
  }
  assert.equal(json, read('tests/golden/page.json'));
  assert.equal(html, read('tests/golden/page.html'));
  assert.equal(other, read('tests/golden/page.zh.html'));
});
