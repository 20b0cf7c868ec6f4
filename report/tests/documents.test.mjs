// Every document at every width: nothing breaks, nothing is asked from outside, nothing is wider than the page.
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { test } from 'node:test';
import { openPage } from './browser.mjs';
import { documents, full, hostileNames } from './documents.mjs';
import { renderReport } from './render.mjs';
import { browser } from './shared.mjs';


const overflow = (page) => page.evaluate(() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  return wide <= 0 ? '' : `${wide} px, ${[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .rail'))
    .slice(0, 4).map((e) => `${e.tagName}.${e.className}`).join(' ')}`;
});

for (const [name, make] of Object.entries(documents)) {
  test(`${name}: opens clean and fits`, async () => {
    const { page, errors, requests, context } = await openPage(browser, make());
    assert.equal(await overflow(page), '', 'at 1320');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.evaluate(() => document.querySelectorAll('.opener, details > summary').forEach((element) => element.click()));
    for (const width of [700, 400]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(60);
      assert.equal(await overflow(page), '', `at ${width}`);
    }
    assert.deepEqual(errors, []);
    assert.deepEqual(requests, []);
    await context.close();
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

test('a page is small: 200 kB gzipped at 310 nodes, 260 at 860, 400 at 3,000', () => {
  for (const [blocks, nodes, most] of [[20, 307, 200], [57, 862, 260], [200, 3007, 400]]) {
    const data = full({ blocks });
    assert.equal(data.graph.name.length, nodes);
    const size = gzipSync(renderReport(data)).length / 1000;
    console.log(`${nodes} nodes: ${Math.round(size)} kB gzipped`);
    assert.ok(size <= most, `${size} kB at ${nodes} nodes`);
  }
});

test('3,000 nodes are drawn within the budget', async () => {
  const data = documents.large();
  assert.ok(data.graph.name.length > 3000);
  const { page, context } = await openPage(browser, data);
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' }); // Of this page alone, whatever else the machine does.
  await page.reload();
  await page.waitForTimeout(500);
  const { metrics } = await session.send('Performance.getMetrics');
  const ms = 1000 * metrics.find((metric) => metric.name === 'ScriptDuration').value;
  console.log(`3,000 nodes: ${Math.round(ms)} ms of script`);
  assert.ok(ms <= 400, `${ms} ms of script`);
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(elements < 6000, `${elements} elements`);
  await context.close();
});
