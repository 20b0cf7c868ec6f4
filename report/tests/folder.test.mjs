// What a run leaves behind: nothing, and what a killed one left goes with the next.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const place = mkdtempSync(join(tmpdir(), 'unmoor-folder-test-'));
after(() => rmSync(place, { recursive: true }));

// A process that has a folder with a page in it, and then does as told.
async function start(then = 'setInterval(() => {}, 1000)') {
  const code = `import { writeFileSync } from 'node:fs'; import { pageFolder } from '${new URL('folder.mjs', import.meta.url)}';
    writeFileSync(pageFolder() + '/0.html', ''); console.log('made'); ${then}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { env: { ...process.env, TMPDIR: place }, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}
async function ended(child, signal) {
  const end = once(child, 'exit');
  if (signal) child.kill(signal);
  await end;
}

test('a run that ends, or is asked to end, leaves no folder', async () => {
  for (const signal of [null, 'SIGTERM', 'SIGINT', 'SIGHUP']) {
    await ended(await start(signal ? undefined : 'setTimeout(() => {}, 200)'), signal);
    assert.deepEqual(readdirSync(place), [], String(signal));
  }
});

test('what a killed run left goes with the next; what is in use or of others stays', async () => {
  const living = await start();
  const killed = await start();
  await ended(killed, 'SIGKILL');
  assert.equal(readdirSync(place).length, 2);
  for (const name of ['unmoor-report-abcdef', 'unmoor-report-old', 'other']) {
    mkdirSync(join(place, name));
    writeFileSync(join(place, name, '0.html'), '');
  }
  utimesSync(join(place, 'unmoor-report-old'), 0, 0);
  await ended(await start('setTimeout(() => {}, 50)'));
  const left = readdirSync(place).sort();
  assert.equal(left.length, 3, left.join(' '));
  assert.match(left.join(' '), new RegExp(`^other unmoor-report-${living.pid}-\\w+ unmoor-report-abcdef$`));
  await ended(living, 'SIGTERM');
});
