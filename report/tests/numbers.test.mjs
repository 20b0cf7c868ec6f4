// The page computes nothing: what it shows as a number stands in the JSON, or is a count or a share of what stands there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './browser.mjs';
import { documents } from './documents.mjs';
import { browser } from './shared.mjs';

// All numbers of a document: its own, and those in its texts.
function numbersOf(value, found = new Set()) {
  if (typeof value === 'number') found.add(value);
  else if (typeof value === 'string') for (const [text] of value.matchAll(/-?\d+(\.\d+)?(e[-+]?\d+)?/g)) found.add(Number(text));
  else if (value && typeof value === 'object') Object.values(value).forEach((item) => numbersOf(item, found));
  return found;
}

// The CSV of every table on the page, with its columns.
async function tables(page) {
  await page.evaluate(() => {
    window.csv = [];
    navigator.clipboard.writeText = async (text) => { window.csv.push(text); };
    document.querySelectorAll('details > summary').forEach((element) => element.click());
  });
  await page.waitForTimeout(100);
  await page.evaluate(() => document.querySelectorAll('.table .tools button.copy').forEach((button) => button.click()));
  await page.waitForTimeout(50);
  return (await page.evaluate(() => window.csv)).map((csv) => {
    const [head, ...rows] = csv.split('\r\n').map((line) => line.split(','));
    return { head, rows };
  });
}

const computed = { Share: (value) => value >= 0 && value <= 1, nodes: (value) => Number.isInteger(value) };

for (const name of ['full', 'floor', 'causes', 'bench', 'align']) {
  test(`${name}: every number of a table is in the JSON`, async () => {
    const data = documents[name]();
    const known = numbersOf(data);
    const { page, context } = await openPage(browser, data);
    const all = await tables(page);
    assert.ok(all.length > 0);
    let checked = 0;
    for (const { head, rows } of all) for (const row of rows) row.forEach((cell, i) => {
      if (cell === '' || !Number.isFinite(Number(cell))) return;
      checked++;
      if (computed[head[i]]) assert.ok(computed[head[i]](Number(cell)), `${head[i]}: ${cell}`);
      else assert.ok(known.has(Number(cell)), `${head[i]}: ${cell}`);
    });
    assert.ok(checked > 5, `${checked} numbers`);
    await context.close();
  });
}

test('every number of verdict and answers is in the JSON, as it is written there', async () => {
  for (const name of ['full', 'spoken']) {
    const data = documents[name]();
    const texts = JSON.stringify(data);
    const { page, context } = await openPage(browser, data, { script: false });
    const shown = await page.$$eval('#sentence, .numbers a, .next .text, .next .effect, .answer', (all) => all.map((element) => element.textContent));
    assert.ok(shown.length > 8);
    for (const text of shown) for (const [number] of text.matchAll(/\d[\d.,]*(e[-+]?\d+)?/g)) assert.ok(texts.includes(number.replace(/[.,]$/, '')), `${number} in ${text}`);
    await context.close();
  }
});
