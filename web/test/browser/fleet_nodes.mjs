// fleet_nodes.mjs - a fleet of three nodes over a PostgreSQL of its own (tests/support/postgres.sh).

import {spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {BIN, ROOT} from './server.mjs';

const hasPostgres = () =>
  (process.env.CORTEX_PG_BIN && existsSync(join(process.env.CORTEX_PG_BIN, 'initdb'))) ||
  (existsSync('/usr/lib/postgresql') &&
    readdirSync('/usr/lib/postgresql').some((version) =>
      existsSync(`/usr/lib/postgresql/${version}/bin/initdb`),
    ));

function lineOf(child, what) {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (data) => (said += data));
    createInterface({input: child.stdout}).once('line', resolve);
    child.once('exit', (code) => reject(new Error(`${what} ended with ${code}: ${said}`)));
  });
}

const ended = (child) =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', resolve);
  });

/** {nodes: {name: {base, url, kill}}, cortex(..), write(n), close()}; {skip} without PostgreSQL. */
export async function serveFleet(...names) {
  if (!hasPostgres()) return {skip: 'no PostgreSQL server is installed (package postgresql)'};
  const folder = mkdtempSync(join(tmpdir(), 'cortex-web-fleet-'));
  // Ends when its standard input does.
  const server = spawn(
    join(ROOT, 'tests/support/postgres.sh'),
    ['sh', '-c', 'echo "$CORTEX_TEST_PG"; cat <&3'],
    {stdio: ['ignore', 'pipe', 'pipe', 'pipe']},
  );
  const nodes = {};
  const close = async () => {
    for (const node of Object.values(nodes)) await node.kill();
    server.stdio[3].end();
    await ended(server);
    rmSync(folder, {recursive: true, force: true});
  };
  try {
    const database = await lineOf(server, 'PostgreSQL');
    const env = {...process.env, HOME: folder, CORTEX_FLEET: database};
    const cortex = (...args) => {
      const done = spawnSync(BIN, args, {encoding: 'utf8', env});
      if (done.status !== 0) throw new Error(`cortex ${args.join(' ')}: ${done.stderr}`);
      return done.stdout;
    };
    cortex('fleet', 'init', '--no-standby');
    const scopes = ['--scope', 'trace:read', '--scope', 'memory:write'];
    const added = cortex('token', 'add', '--home', database, '--name', 'page', ...scopes, '--json');
    const {token} = JSON.parse(added);
    for (const name of names) {
      // A group of its own: parent and worker are gone at once, as when a machine is lost.
      const child = spawn(
        BIN,
        ['serve', '--fleet', database, '--node', name, '--listen', '127.0.0.1:0', '--json'].concat([
          '--lease',
          '2',
        ]),
        {stdio: ['ignore', 'pipe', 'pipe'], env, cwd: folder, detached: true},
      );
      nodes[name] = {
        kill() {
          if (child.exitCode === null && child.signalCode === null)
            process.kill(-child.pid, 'SIGKILL');
          return ended(child);
        },
      };
      const base = JSON.parse(await lineOf(child, name)).url;
      nodes[name].base = base;
      nodes[name].url = (to) => `${base}/#token=${token}&to=${encodeURIComponent(to)}`;
      // The first one takes the part.
      if (name === names[0]) await answers(base, token);
    }
    return {nodes, cortex, close, write: (base, n) => write(base, token, n)};
  } catch (error) {
    await close();
    throw error;
  }
}

const headers = (token) => ({
  Authorization: `Bearer ${token}`,
  'Content-Type': 'application/json',
});

async function answers(base, token) {
  const answer = await fetch(`${base}/api/v1/nodes`, {headers: headers(token)});
  if (!answer.ok) throw new Error(`${base}: ${answer.status} ${await answer.text()}`);
}

async function write(base, token, n) {
  const data = {subject: 'the fleet', predicate: 'is', statement: `up ${n}`};
  const answer = await fetch(`${base}/api/v1/actors/page/memories`, {
    method: 'POST',
    headers: headers(token),
    body: JSON.stringify({type: 'Fact', data, key: `key-${n}`}),
  });
  if (!answer.ok) throw new Error(`${base}: ${answer.status} ${await answer.text()}`);
}
