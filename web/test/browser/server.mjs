// server.mjs - starts the program under test on a free port, over recorded data, and ends it.

import {spawn, spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {createInterface} from 'node:readline';
import {fileURLToPath} from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../..');
export const BIN = process.env.CORTEX_BIN ?? join(ROOT, 'build/release/bin/cortex');

/** The first line that the program prints; rejects when it ends without one. */
function firstLine(child) {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (data) => (said += data));
    createInterface({input: child.stdout}).once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`cortex ended with ${code}: ${said}`)));
  });
}

function ending(child) {
  return () =>
    new Promise((resolve) => {
      if (child.exitCode !== null) return resolve();
      child.once('exit', resolve);
      child.kill('SIGTERM');
    });
}

/** `cortex lattice view FILE`: {url, close}; the address signs in. */
export async function viewFile(file, ...more) {
  const child = spawn(BIN, ['lattice', 'view', file, '--json', ...more], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return {url: JSON.parse(await firstLine(child)).url, close: ending(child)};
}

export function cortex(args, options = {}) {
  const done = spawnSync(BIN, args, {encoding: 'utf8', ...options});
  if (done.error) throw done.error;
  return done;
}

/** A home of its own, filled by `fill(home)`, and `cortex serve` over it. */
export async function serveHome(fill = () => {}, ...more) {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-web-'));
  const home = join(folder, 'home');
  const made = cortex(['init', '--no-repo', '--home', home]);
  if (made.status !== 0) throw new Error(made.stderr);
  await fill(home);
  const child = spawn(
    BIN,
    ['serve', '--home', home, '--listen', '127.0.0.1:0', '--json', ...more],
    {stdio: ['ignore', 'pipe', 'pipe']},
  );
  const {url} = JSON.parse(await firstLine(child));
  const end = ending(child);
  const token = readFileSync(join(home, 'token'), 'utf8').trim();
  return {
    home,
    token,
    base: url,
    /** An address that signs in and then shows `to` ("/inbox"). */
    url: (to = '') => `${url}/#token=${token}${to ? '&to=' + encodeURIComponent(to) : ''}`,
    async close() {
      await end();
      rmSync(folder, {recursive: true, force: true});
    },
  };
}
