// The page in Chinese: both files of words say the same, and no English sentence is left on a page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openPage } from './browser.mjs';
import { documents } from './documents.mjs';
import { Phrases } from './phrases.mjs';
import { renderReport } from './render.mjs';
import { axeFindings, browser } from './shared.mjs';

const read = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
const [english, chinese] = [read('words.json'), read('words.zh.json')];

function leaves(value, path = []) {
  if (value && typeof value === 'object') return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]));
  return [[path.join('.'), value]];
}
const marks = (text) => [...text.matchAll(/\{(\w+)[#@*]?\}/g)].map((match) => match[1]).sort();

test('both files of words have the same keys, and the same marks in each', () => {
  assert.deepEqual(leaves(chinese).map(([key]) => key), leaves(english).map(([key]) => key));
  for (const [i, [key, text]] of leaves(chinese).entries()) {
    assert.deepEqual(marks(text), marks(leaves(english)[i][1]), key);
    assert.ok(text.trim(), key);
  }
});

test('what has letters in English has Chinese ones in Chinese', () => {
  const same = /^(lang|icons\..*|verdicts\..*\.state|sections\.\d+\.id)$/;
  for (const [i, [key, text]] of leaves(chinese).entries()) {
    const own = leaves(english)[i][1].replace(/\{[^}]*\}/g, '');
    if (!same.test(key) && /[a-z]{3}/.test(own)) assert.match(text, /[\u4e00-\u9fff]/, `${key}: ${text}`);
  }
});

test('a sentence keeps what it tells, and one that is not known stays', () => {
  const phrases = new Phrases(english, chinese);
  assert.equal(phrases.translated("The model runs on opencl:0, but its numbers differ from '/a and b/{x}' on."), '模型能在 opencl:0 上运行，但从“/a and b/{x}”开始数值不一致。');
  assert.equal(phrases.translated('The target stores its result in float16, and leaves out the mask.'), '目标以 float16 存放结果，并且漏掉了掩码。');
  for (const text of ['', 'sums of 3 products', 'The target dances.', 'matmul of three', 'x'.repeat(5000), '{n} nodes', "constructor"]) assert.equal(phrases.translated(text), null, text.slice(0, 40));
});

// Texts and attributes that a reader meets, without names, ids and commands.
const shown = (page) => page.evaluate(() => {
  const out = [];
  const skip = 'script, style, code, .name, bdi, noscript, svg text, svg title, .label, .value, .ticks, .facts, [hidden]';
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest(skip)) out.push(walk.currentNode.textContent);
  document.querySelectorAll('[aria-label], [placeholder]').forEach((element) => out.push(element.getAttribute('aria-label') ?? '', element.getAttribute('placeholder') ?? ''));
  return out.map((text) => text.trim()).filter(Boolean);
});

for (const [name, make] of Object.entries(documents)) {
  if (['large', 'hostile', 'full', 'floor', 'not finite'].includes(name)) continue; // Invented sentences, or the same parts as others.
  test(`${name} in Chinese: no word of the page is English, and it fits`, async () => {
    const data = make();
    const { page, errors, context } = await openPage(browser, data, { language: 'zh', width: 400 });
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
    await page.evaluate(() => document.querySelectorAll('.opener, details > summary').forEach((element) => element.click()));
    const texts = await shown(page);
    const words = new Map(leaves(english.script).filter(([key, text]) => !key.startsWith('category_names') &&  /[a-z]{3}/.test(text) && /^[A-Za-z]/.test(text)).map(([key, text]) => [text, key]));
    for (const text of texts) assert.ok(!words.has(text), `${words.get(text)}: ${text}`);
    if (name === 'spoken') for (const text of texts) assert.doesNotMatch(text, /[A-Za-z]{2,}[ ,.;:]+[a-z]{2,}[ ,.;:]+[a-z]{2,}/, text);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'wider than the page');
    assert.deepEqual(errors, []);
    await context.close();
  });
}

test('the JSON stays English, names and commands stay, and axe finds nothing', async () => {
  const data = documents.spoken();
  const { page, context } = await openPage(browser, data, { language: 'zh', hash: '#node=blocks.0.mlp.act' });
  assert.deepEqual(await page.evaluate(() => JSON.parse(document.getElementById('data').textContent)), data);
  assert.equal(await page.innerText('h1'), '模型能在 gpu:0 上运行，但从“blocks.0.mlp.act”开始数值不一致。');
  assert.match(await page.innerText('.card'), /unmoor align .*--node blocks\.0\.mlp\.act/);
  assert.match(await page.innerText('#align .sentence'), /目标用了 GELU 两种形式中的另一种/);
  assert.deepEqual(await axeFindings(page), []);
  await context.close();
});

test('without script a Chinese page is read', async () => {
  const { page, context } = await openPage(browser, null, { html: renderReport(documents.spoken(), 'zh'), script: false });
  const text = await page.innerText('body');
  for (const said of ['受阻', '下一步做什么', '在主机上运行', '能在那里运行吗', '热运行', 'JavaScript']) assert.ok(text.includes(said), said);
  await context.close();
});
