// The folder for this process's pages: it goes when the process ends, and takes those of killed processes along when it is made.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'unmoor-report-';
const day = 24 * 3600 * 1000;

// A folder is named after its process. One that names none is given a day.
function isLeft(name) {
  const owner = name.slice(prefix.length).match(/^(\d+)-/)?.[1];
  if (!owner) return Date.now() - statSync(join(tmpdir(), name)).mtimeMs > day;
  try {
    process.kill(Number(owner), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH'; // EPERM: it lives, and is another user's.
  }
}

function sweep() {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    try {
      if (isLeft(name)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another process was faster, or it is another user's.
    }
  }
}

let folder = '';

export function pageFolder() {
  if (folder) return folder;
  sweep();
  folder = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const [signal, number] of [['SIGHUP', 1], ['SIGINT', 2], ['SIGTERM', 15]]) process.once(signal, () => process.exit(128 + number));
  return folder;
}
