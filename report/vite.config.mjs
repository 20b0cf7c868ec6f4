import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig } from 'vite';
import { paletteCss } from './palette.mjs';

// Colours come from one file, palette.json; every theme and print get their rules from it.
const palette = () => ({
  name: 'palette',
  resolveId: (id) => (id === 'virtual:palette.css' ? '\0palette.css' : null),
  load: (id) => (id === '\0palette.css' ? paletteCss() : null),
});

// Writes the bundle's hash for the Content-Security-Policy and refuses what an inline script cannot hold.
const seal = () => ({
  name: 'seal',
  writeBundle({ dir }) {
    const script = readFileSync(join(dir, 'report.js'));
    const style = readFileSync(join(dir, 'report.css'));
    if (/<\/script|<!--|<script/i.test(script.toString()) || /<\//.test(style.toString()))
      throw new Error('the bundle cannot stand inside an HTML page');
    writeFileSync(join(dir, 'report.csp'), 'sha256-' + createHash('sha256').update(script).digest('base64'));
    const size = gzipSync(script).length + gzipSync(style).length;
    if (size > 60000) throw new Error(`front end of ${size} bytes gzipped, not at most 60000`);
    console.log(`front end: ${(size / 1000).toFixed(1)} kB gzipped`);
  },
});

export default defineConfig({
  plugins: [palette(), seal()],
  logLevel: 'warn',
  build: {
    target: ['es2020', 'chrome90', 'firefox90', 'safari14'],
    lib: { entry: 'src/main.ts', formats: ['iife'], name: 'unmoor_report', fileName: () => 'report.js', cssFileName: 'report' },
    reportCompressedSize: false,
  },
});
