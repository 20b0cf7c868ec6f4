import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { pageFolder } from './folder.mjs';
import { renderReport } from './render.mjs';

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

let number = 0;

// Opens a document's page from disk and collects everything that goes wrong and everything that is asked for.
export async function openPage(browser, data, { width = 1320, theme = 'light', script = true, hash = '', language = 'en', html = renderReport(data, language) } = {}) {
  const file = join(pageFolder(), `${number++}.html`);
  writeFileSync(file, html);
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, javaScriptEnabled: script });
  const page = await context.newPage();
  const errors = [];
  const requests = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('dialog', (dialog) => { errors.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || requests.push(request.url()));
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForTimeout(50);
  return { page, errors, requests, context };
}
