// The picture of an error: where it lies, and whether chance made it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openPage } from './browser.mjs';
import { documents } from './documents.mjs';
import { renderReport } from './render.mjs';
import { browser } from './shared.mjs';

const pixel = (page, x, y) => page.$eval('.plane canvas', (canvas, [at, down]) => {
  const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, -at, -down);
  return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
}, [x, y]);

test('the picture shows every cell in the colours of the theme, and its words say what it is', async () => {
  const data = documents.causes();
  const plane = data.align.values.find((value) => value.plane).plane;
  const cells = new Int8Array(Buffer.from(plane.data, 'base64'));
  const { page, errors, context } = await openPage(browser, data);
  assert.deepEqual(await page.$eval('.plane canvas', (canvas) => [canvas.width, canvas.height]), [256, 128]);
  const [low, high] = [cells.indexOf(-127), cells.indexOf(127)];
  const at = (i) => pixel(page, i % 256, Math.floor(i / 256));
  assert.deepEqual([await at(low), await at(high)], [[0x21, 0x66, 0xac], [0xb3, 0x58, 0x06]]);
  await page.getByRole('button', { name: 'Light / dark' }).click();
  await page.waitForTimeout(50);
  assert.deepEqual([await at(low), await at(high)], [[0x5a, 0xa5, 0xe6], [0xf0, 0x95, 0x3c]]);
  const text = await page.innerText('.plane');
  for (const said of ['axes 0, 1 (1 × 128) ↓', 'axis 2 (768) →', 'systematic', '78 % of the error', '≥ 4.9e-4']) assert.ok(text.includes(said), `${said} in ${text}`);
  assert.match(await page.getAttribute('.plane canvas', 'aria-label'), /systematic\. 78 %/);
  assert.equal(await page.locator('.plane svg').count(), 2);
  assert.deepEqual(errors, []);
  await context.close();
});

test('a node without a cause shows its picture alone; a broken one is left out', async () => {
  const data = documents.causes();
  const [first, second] = data.align.values.filter((value) => value.plane);
  data.align.values.forEach((value) => (value.cause = null));
  first.plane = { ...first.plane, data: 'not base64!' };
  const { page, errors, context } = await openPage(browser, data);
  assert.match(await page.innerText('#align .cause .sentence'), /No cause was found/);
  assert.equal(await page.locator('#align .plane').count(), 0);
  await page.click('.cause.others summary');
  assert.match(await page.innerText('.cause.others .plane'), /random/);
  assert.ok(second.plane);
  for (const broken of [{}, { rows: 1e9, cols: 1e9 }, { rows: 2, cols: 2, data: 'AAAA' }, { rows: 'nan', cols: 3, data: [] }, { ...second.plane, axes: 3, hist: 'x', col_mean: {}, pattern: 5, shape: null }]) {
    first.plane = broken;
    await page.setContent(renderReport(data));
    assert.equal(await page.locator('html.script').count(), 1);
  }
  assert.deepEqual(errors, []);
  await context.close();
});

test('pictures of the largest size do not burst a page', () => {
  assert.ok(gzipSync(renderReport(documents.causes())).length < 200000);
});
