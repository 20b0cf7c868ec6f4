// Every document at every width: nothing breaks, nothing is asked from outside, nothing is wider than the page.
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './browser.mjs';
import { documents, hostileNames } from './documents.mjs';
import { renderReport } from './render.mjs';

let browser;
before(async () => (browser = await startBrowser()));
after(() => browser.close());

const overflow = (page) => page.evaluate(() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  return wide <= 0 ? '' : `${wide} px, ${[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .rail'))
    .slice(0, 4).map((e) => `${e.tagName}.${e.className}`).join(' ')}`;
});

for (const [name, make] of Object.entries(documents)) {
  test(`${name}: opens clean and fits`, async () => {
    const html = renderReport(make());
    for (const width of [1320, 700, 400]) {
      const { page, errors, requests, context } = await openPage(browser, null, { html, width, theme: width === 700 ? 'dark' : 'light' });
      if (width !== 1320) {
        for (const button of await page.$$('.opener, details > summary')) await button.evaluate((element) => element.click());
        await page.waitForTimeout(50);
      }
      assert.equal(await overflow(page), '', `at ${width}`);
      assert.deepEqual(errors, []);
      assert.deepEqual(requests, []);
      await context.close();
    }
  });
}

test('without script the verdict, numbers, answers and steps are read', async () => {
  const data = documents.full();
  const { page, context } = await openPage(browser, data, { script: false });
  const text = await page.innerText('body');
  for (const part of [data.sentence, 'Ready with limits', ...data.figures.flatMap((f) => [f.value, f.label]), ...Object.values(data.answers), ...data.next.flatMap((n) => [n.text, n.command]), data.tools[5].command, 'need JavaScript'])
    assert.ok(text.includes(part), part);
  await context.close();
});

test('what has the wrong type is left out, and the rest is drawn', async () => {
  const junk = [null, 3, 'x', [], {}, [null, 1, 'x', {}, []], true];
  const paths = [];
  const walk = (value, path, depth) => {
    if (path.length) paths.push(path);
    if (depth && value && typeof value === 'object') for (const key of Object.keys(value).slice(0, Array.isArray(value) ? 1 : 99)) walk(value[key], [...path, key], depth - 1);
  };
  walk(documents['one node'](), [], 4);
  const { page, errors, context } = await openPage(browser, {});
  for (let i = 0; i < paths.length; i += 5) {
    const data = documents['one node']();
    const path = paths[i];
    path.slice(0, -1).reduce((object, key) => object[key], data)[path.at(-1)] = junk[i % junk.length];
    await page.setContent(renderReport(data));
    assert.equal(await page.locator('html.script').count(), 1);
    assert.deepEqual(errors, [], `${path.join('.')} ${JSON.stringify(junk[i % junk.length])}`);
  }
  await context.close();
});

test('hostile names stay text', async () => {
  const data = documents.hostile();
  const { page, errors, context } = await openPage(browser, data);
  assert.equal(await page.locator('img').count(), 0);
  assert.equal(await page.innerText('h1'), data.sentence);
  const held = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).graph.name);
  assert.deepEqual(held.slice(0, hostileNames.length), hostileNames);
  for (const name of hostileNames) {
    await page.evaluate((text) => (location.hash = `#node=${encodeURIComponent(text)}`), name);
    await page.waitForFunction((text) => document.getElementById('card-title')?.textContent === text, name);
  }
  await page.evaluate(() => (location.hash = '#node=%zz'));
  await page.waitForTimeout(30);
  assert.deepEqual(errors, []);
  await context.close();
});

test('what is not finite is shown as such', async () => {
  const { page, context } = await openPage(browser, documents['not finite']());
  await page.evaluate(() => (location.hash = '#node=blocks.0.attn.t'));
  await page.waitForSelector('.card:not([hidden])');
  assert.match(await page.innerText('.card'), /NaN/);
  assert.match(await page.innerText('.legend:has-text("NaN or infinity")'), /NaN or infinity/);
  await context.close();
});

test('a page of common size is small', () => {
  const html = renderReport(documents.full());
  assert.ok(gzipSync(html).length < 200000);
});

test('3,000 nodes are drawn within the budget', async () => {
  const data = documents.large();
  assert.ok(data.graph.name.length > 3000);
  const { page, context } = await openPage(browser, data);
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  await page.reload();
  await page.waitForTimeout(500);
  const { metrics } = await session.send('Performance.getMetrics');
  const ms = 1000 * metrics.find((metric) => metric.name === 'ScriptDuration').value;
  console.log(`3,000 nodes: ${Math.round(ms)} ms of script`);
  assert.ok(ms < 1200, `${ms} ms of script; 400 on a machine of its own`);
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(elements < 6000, `${elements} elements`);
  await context.close();
});
