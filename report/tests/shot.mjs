// Screenshots for eyes: node tests/shot.mjs DOCUMENT WIDTH light|dark FILE.png
import { writeFileSync } from 'node:fs';
import { documents } from './documents.mjs';
import { openPage, startBrowser } from './browser.mjs';

const [, , name = 'full', width = '1320', theme = 'light', file = '/tmp/report.png', hash = ''] = process.argv;
const browser = await startBrowser();
const { page } = await openPage(browser, documents[name](), { width: Number(width), theme, hash });
await page.waitForTimeout(300);
writeFileSync(file, await page.screenshot({ fullPage: true }));
await browser.close();
