// All tests in one process, so that they share one browser.
import { readdirSync } from 'node:fs';

for (const name of readdirSync(new URL('.', import.meta.url)).filter((file) => file.endsWith('.test.mjs')).sort()) await import(`./${name}`);
