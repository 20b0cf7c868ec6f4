// Screenshots for eyes, cut into pieces: node tests/shot.mjs DOCUMENT WIDTH light|dark PREFIX [#node=…]
import { writeFileSync } from 'node:fs';
import { openPage, startBrowser } from './browser.mjs';
import { documents } from './documents.mjs';

const [, , name = 'full', width = '1320', theme = 'light', prefix = '/tmp/report', hash = ''] = process.argv;
const browser = await startBrowser();
const { page } = await openPage(browser, documents[name](), { width: Number(width), theme, hash });
await page.waitForTimeout(300);
const height = await page.evaluate(() => document.documentElement.scrollHeight);
for (let y = 0, i = 0; y < height; y += 1500, i++)
  writeFileSync(`${prefix}-${i}.png`, await page.screenshot({ fullPage: true, clip: { x: 0, y, width: Number(width), height: Math.min(1500, height - y) } }));
await browser.close();
