// Screenshots for eyes, cut into pieces: node tests/shot.mjs DOCUMENT|PAGE.html WIDTH light|dark PREFIX [#node=…] [LANGUAGE]
import { readFileSync, writeFileSync } from 'node:fs';
import { launch, openPage } from './browser.mjs';
import { documents } from './documents.mjs';
import { renderReport } from './render.mjs';

const [, , name = 'full', width = '1320', theme = 'light', prefix = '/tmp/report', hash = '', language = 'en'] = process.argv;
const browser = await launch();
const html = name.endsWith('.html') ? readFileSync(name, 'utf8') : renderReport(documents[name](), language);
const { page } = await openPage(browser, null, { html, width: Number(width), theme, hash });
await page.waitForTimeout(300);
const height = await page.evaluate(() => document.documentElement.scrollHeight);
for (let y = 0, i = 0; y < height; y += 1500, i++)
  writeFileSync(`${prefix}-${i}.png`, await page.screenshot({ fullPage: true, clip: { x: 0, y, width: Number(width), height: Math.min(1500, height - y) } }));
await browser.close();
