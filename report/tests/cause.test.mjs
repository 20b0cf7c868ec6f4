// The cause card: what the worst node does instead, and how sure that is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './browser.mjs';
import { documents } from './documents.mjs';
import { axeFindings, browser } from './shared.mjs';

const rows = (place) => place.$$eval('.bars > li:not(.ticks)', (all) => all.map((row) => [row.querySelector('.label').textContent, row.querySelector('.value').textContent]));

test('the card says the sentence, the advice, and the changes with the most evidence', async () => {
  const { page, errors, context } = await openPage(browser, documents.causes());
  const card = await page.$('#align .cause');
  assert.equal(await (await card.$('.sentence')).textContent(), 'blocks.0.mlp.act (Gelu): The target computes GELU by tanh, though the model asks for erf.');
  assert.equal(await (await card.$('.sentence')).evaluate((element) => getComputedStyle(element).fontSize), '16px');
  assert.match(await (await card.$('.advice')).textContent(), /erf form/);
  const shown = await rows(card);
  assert.equal(shown.length, 11);
  assert.deepEqual(shown.slice(0, 3), [['no change', '420 ×'], ['gelu-tanh', '0.92 × · 5,120 bits'], ['gelu-quick', '38 × · 400 bits']]);
  assert.deepEqual(shown.at(-1), ['transposed-weights', '∞ × · −820 bits']);
  assert.match(await (await card.$('.command code')).textContent(), /^unmoor align .* --node blocks\.0\.mlp\.act$/);
  assert.deepEqual(errors, []);
  await context.close();
});

test('a lollipop ends in the green zone where rounding explains the rest, and only there', async () => {
  const { page, context } = await openPage(browser, documents.causes());
  const ends = await page.$$eval('#align .cause:not(.others) .bars > li:not(.ticks) svg.plot', (all) => all.map((plot) => {
    const dot = plot.querySelector('circle');
    return dot ? parseFloat(dot.getAttribute('cx')) <= parseFloat(plot.querySelector('rect').getAttribute('width')) : null;
  }));
  assert.deepEqual(ends, [false, true, ...Array(8).fill(false), null]);
  await context.close();
});

test('other causes are closed; ties and pairs are named together; missing numbers are no marks', async () => {
  const { page, errors, context } = await openPage(browser, documents.causes());
  const others = await page.$$('#align .cause.others details');
  assert.equal(others.length, 3);
  for (const other of others) {
    assert.equal(await other.$('.bars'), null);
    await (await other.$('summary')).click();
    await other.waitForSelector('.bars');
  }
  assert.equal((await rows(others[0]))[1][0], 'bias-dropped, or bias-wrong, or shift-by-mean');
  assert.match(await others[0].textContent(), /cannot tell it from bias-wrong, shift-by-mean\./);
  assert.equal((await rows(others[1]))[1][0], 'gelu-tanh+float16-sums');
  assert.deepEqual(await rows(others[2]), [['no change', '300 ×'], ['gelu-tanh', '–']]);
  await page.click('#align .figure:first-child .drawers summary');
  assert.equal(await page.locator('#align .figure:first-child .table tbody tr').count(), 13);
  assert.deepEqual(errors, []);
  await context.close();
});

test('without a cause there is no card; what has the wrong type is none', async () => {
  const data = documents.causes();
  data.align.values.forEach((value, i) => (value.plane = value.cause = [null, 3, 'x', [], {}, { id: 4 }, undefined][i % 7]));
  const { page, errors, context } = await openPage(browser, data);
  assert.equal(await page.locator('.cause').count(), 0);
  assert.deepEqual(errors, []);
  await context.close();
});

for (const theme of ['light', 'dark']) {
  test(`axe finds nothing on the card, ${theme}`, async () => {
    const { page, context } = await openPage(browser, documents.causes(), { theme });
    for (const summary of await page.$$('#align summary')) await summary.click();
    assert.deepEqual(await axeFindings(page, '#align', ['wcag2a', 'wcag2aa', 'wcag21aa']), []);
    await context.close();
  });
}
