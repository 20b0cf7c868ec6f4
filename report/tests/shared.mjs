// One browser for all tests of a process.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after } from 'node:test';
import { launch } from './browser.mjs';

export const browser = await launch();
after(() => browser.close());

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// What axe finds against accessibility, as text.
export async function axeFindings(page, place = 'html', rules = ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']) {
  await page.evaluate(axe);
  const found = await page.evaluate(([where, runOnly]) => window.axe.run(where === 'html' ? document : document.querySelector(where), { runOnly }), [place, rules]);
  return found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 150)).join(' | ')}`);
}
