// What a reader does: keys, node card, zoom, theme, tables, paper.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openPage } from './browser.mjs';
import { documents } from './documents.mjs';
import { axeFindings, browser } from './shared.mjs';

test('keys move the cursor, open a node, step and close', async () => {
  const { page, errors, context } = await openPage(browser, documents.full());
  const chart = page.locator('#glance .chart');
  await chart.focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'Shift+ArrowRight', 'ArrowLeft']) await page.keyboard.press(key);
  assert.match(await chart.getAttribute('aria-valuetext'), /^blocks\.0\.attn\.proj\. device gpu:0/i);
  assert.ok(await page.locator('.tip').isVisible());
  const cursors = await page.$$eval('svg .cursor', (paths) => paths.filter((path) => path.getAttribute('d')).length);
  assert.ok(cursors >= 5, 'one cursor in every chart');
  await page.keyboard.press('Enter');
  assert.equal(await page.innerText('#card-title'), 'blocks.0.attn.proj');
  assert.ok(decodeURIComponent(page.url()).endsWith('#node=blocks.0.attn.proj'));
  await page.click('.card .steps button:last-child');
  assert.equal(await page.innerText('#card-title'), 'blocks.0.add1');
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('.card').isHidden());
  assert.ok(!page.url().includes('#node'));
  assert.ok(await chart.evaluate((element) => element === document.activeElement), 'focus returns');
  await page.keyboard.press('Home');
  await page.keyboard.press('End');
  assert.match(await chart.getAttribute('aria-valuetext'), /^post\.nms/);
  assert.deepEqual(errors, []);
  await context.close();
});

test('keys alone lead from the top of the page to a node card and back', async () => {
  const { page, context } = await openPage(browser, documents.full());
  const focused = () => page.evaluate(() => document.activeElement?.className ?? '');
  for (let i = 0; i < 40 && (await focused()) !== 'chart'; i++) await page.keyboard.press('Tab');
  assert.equal(await focused(), 'chart');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  assert.equal(await page.innerText('#card-title'), 'pre.resize');
  assert.match(await focused(), /card/);
  await page.keyboard.press('Tab');
  assert.ok(await page.evaluate(() => document.activeElement.closest('.card') !== null), 'the card is next');
  await page.keyboard.press('Escape');
  assert.equal(await focused(), 'chart');
  await context.close();
});

test('commands on a card are what a shell takes', async () => {
  const data = documents.full();
  data.graph.name[3] = "it's; $(id)";
  data.graph.name[4] = "\u001b[31m'x\\";
  data.model.path = 'my models/a b.onnx';
  const { page, context } = await openPage(browser, data);
  const commands = async (name) => {
    await page.evaluate((text) => (location.hash = `#node=${encodeURIComponent(text)}`), name);
    await page.waitForFunction((text) => document.getElementById('card-title')?.textContent === text, name);
    return page.$$eval('.card .command code', (all) => all.map((code) => code.textContent));
  };
  assert.deepEqual(await commands(data.graph.name[3]), [
    String.raw`unmoor align 'my models/a b.onnx' --reference reference --target gpu:0 --node 'it'\''s; $(id)'`,
    String.raw`unmoor run 'my models/a b.onnx' --on gpu:0 --explain --node 'it'\''s; $(id)'`]);
  assert.ok((await commands(data.graph.name[4]))[0].endsWith(String.raw`--node $'\x1b[31m\'x\\'`));
  await context.close();
});

test('z and a block name zoom every chart', async () => {
  const { page, context } = await openPage(browser, documents.full());
  await page.locator('#plan .chart svg .axis text', { hasText: /^5/ }).click();
  assert.equal(await page.$$eval('.chart .back', (all) => all.length), await page.$$eval('.chart', (all) => all.length));
  await page.locator('#plan .chart').focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await page.getAttribute('#plan .chart', 'aria-valuetext'), /^blocks\.5\./);
  await page.keyboard.press('z');
  assert.equal(await page.$$eval('.chart .back', (all) => all.length), 0);
  await context.close();
});

test('what the host runs by choice is half tone, and what was refused is not', async () => {
  const { page, context } = await openPage(browser, documents.full());
  const tones = await page.$$eval('#glance .marks path[fill="var(--host)"]', (all) => all.map((path) => path.getAttribute('opacity')));
  assert.deepEqual(tones.sort(), ['0.5', null].sort());
  await context.close();
});

test('devices that are absent for one reason are one row, and none is said to have been checked', async () => {
  const data = documents.doctor();
  data.doctor.devices = ['cuda', 'hip'].map((name) => ({ name, state: 'absent', reason: 'no backend', check_ms: 0 })).concat({ name: 'cpu', state: 'ready', check_ms: 0.2 });
  const { page, context } = await openPage(browser, data);
  const rows = (await page.$$eval('#doctor .plainlist', ([list]) => [...list.children].map((row) => row.textContent))).filter((row) => /cuda|cpu/.test(row));
  assert.equal(rows.length, 2);
  assert.match(rows[0], /cuda hip .*no backend$/);
  assert.match(rows[1], /checked in 0\.2 ms/);
  await context.close();
});

test('the target is the first column, wherever it stands among the platforms', async () => {
  const data = documents.scan();
  data.scan.platforms.push(data.scan.platforms.shift());
  const { page, context } = await openPage(browser, data);
  assert.match(await page.innerText('.coverage thead th:nth-child(3)'), /^gpu · target/);
  await context.close();
});

test('an answer that is the sentence is not said twice', async () => {
  const data = documents.scan();
  data.sentence = data.answers.scan;
  const { page, context } = await openPage(browser, data);
  assert.equal(await page.locator('.answer').count(), 0);
  assert.equal(await page.innerText('h1'), 'Yes.');
  await context.close();
});

test('a link with a node opens its card, a link in a table too', async () => {
  const { page, context } = await openPage(browser, documents.full(), { hash: '#node=neck.1.sample' });
  assert.equal(await page.innerText('#card-title'), 'neck.1.sample');
  assert.match(await page.innerText('.card'), /No kernel/i);
  await page.locator('#align table a').first().click();
  await page.waitForFunction(() => document.getElementById('card-title').textContent.endsWith('mlp.act'));
  await context.close();
});

test('tables filter, sort and give CSV that no spreadsheet runs', async () => {
  const { page, context } = await openPage(browser, documents.hostile());
  await context.grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => {});
  const table = page.locator('#align .table').last();
  await table.locator('input').fill('=1+1');
  assert.equal(await table.locator('tbody tr').count(), 1);
  await page.evaluate(() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; });
  await table.locator('button.copy').click();
  const csv = await page.evaluate(() => window.copied);
  assert.match(csv.split('\r\n')[1], /^'=1\+1,/);
  await table.locator('input').fill('');
  await table.locator('th button').nth(4).click();
  assert.equal(await table.locator('th').nth(4).getAttribute('aria-sort'), 'descending');
  await context.close();
});

test('the JSON is saved as it came', async () => {
  const data = documents.full();
  const { page, context } = await openPage(browser, data);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save the JSON' }).click()]);
  assert.deepEqual(JSON.parse(readFileSync(await download.path(), 'utf8')), data);
  await context.close();
});

test('the theme follows the system and the button', async () => {
  const { page, context } = await openPage(browser, documents.full(), { theme: 'dark' });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await ground(), 'rgb(13, 19, 24)');
  await page.getByRole('button', { name: 'Light / dark' }).click();
  assert.equal(await ground(), 'rgb(245, 247, 248)');
  await context.close();
});

test('it prints', async () => {
  const { page, errors, context } = await openPage(browser, documents.full(), { theme: 'dark' });
  const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
  const pages = (pdf.match(/\/Type\s*\/Page\b/g) ?? []).length;
  assert.ok(pages >= 3 && pages <= 14, `${pages} pages`);
  await page.setViewportSize({ width: 700, height: 900 });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const paper = await page.evaluate(() => ({ surface: getComputedStyle(document.documentElement).getPropertyValue('--surface'), wide: document.documentElement.scrollWidth }));
  assert.equal(paper.surface, '#ffffff', 'paper is light');
  assert.ok(paper.wide <= 700, `${paper.wide} px on paper`);
  assert.deepEqual(errors, []);
  await context.close();
});

for (const theme of ['light', 'dark']) {
  test(`axe finds nothing, ${theme}`, async () => {
    const { page, context } = await openPage(browser, documents.full(), { theme, hash: '#node=blocks.0.mlp.act' });
    assert.deepEqual(await axeFindings(page), []);
    await context.close();
  });
}
