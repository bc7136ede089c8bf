// runs.mjs - a repository with governed runs, served: bundles of tests/vectors/run/golden, as they
// are or changed by `fill(runs)`.

import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {ROOT, serveHome} from './server.mjs';

const GOLDEN = join(ROOT, 'tests/vectors/run/golden');

export function goldenId(scenario) {
  return JSON.parse(readFileSync(join(GOLDEN, scenario, 'bundle/manifest.json'), 'utf8')).run_id;
}

export function goldenText(scenario, path) {
  return readFileSync(join(GOLDEN, scenario, 'bundle', path), 'utf8');
}

function git(folder, ...args) {
  const done = spawnSync('git', args, {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...process.env,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'Cortex Test',
      GIT_AUTHOR_EMAIL: 'test@example.invalid',
      GIT_COMMITTER_NAME: 'Cortex Test',
      GIT_COMMITTER_EMAIL: 'test@example.invalid',
    },
  });
  if (done.status !== 0) throw new Error(`git ${args[0]}: ${done.stderr ?? done.error}`);
}

/** A golden bundle among `runs`; the folder it is in. */
export function putBundle(runs, scenario) {
  const to = join(runs, goldenId(scenario));
  cpSync(join(GOLDEN, scenario, 'bundle'), to, {recursive: true});
  return to;
}

/** All of a golden bundle but its events, beside those that are there. */
export function putRest(runs, scenario) {
  cpSync(join(GOLDEN, scenario, 'bundle'), join(runs, goldenId(scenario)), {
    recursive: true,
    filter: (path) => !path.endsWith('/bundle/events.jsonl'),
  });
}

/** A workflow case beside `runs`, as the server writes it; its id. */
export function putCase(runs, number, members) {
  const id = `case_20260101_0000${String(number).padStart(2, '0')}_${'0'.repeat(31)}1`;
  const folder = join(runs, '../cases');
  mkdirSync(folder, {recursive: true});
  const {contract, ...rest} = members;
  const text = contract === undefined ? '' : JSON.stringify(contract);
  if (text !== '') writeFileSync(join(folder, `${id}.contract.json`), text);
  writeFileSync(
    join(folder, `${id}.json`),
    JSON.stringify({
      version: 'v1',
      case_id: id,
      state: 'CANCELLED',
      created_at: '2026-01-01T00:00:00.000000Z',
      updated_at: '2026-01-01T00:00:00.000000Z',
      contract_sha256: text === '' ? null : createHash('sha256').update(text, 'utf8').digest('hex'),
      ...rest,
    }),
  );
  return id;
}

/** As serveHome, with `runs`, the folder of bundles; `fillHome(home)` records more. */
export async function serveRuns(fill, fillHome = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-runs-'));
  const repo = join(folder, 'repo');
  const runs = join(repo, '.runtime-cache/cortexpilot/runs');
  mkdirSync(runs, {recursive: true});
  writeFileSync(join(repo, '.gitignore'), '.runtime-cache/\n');
  git(repo, 'init', '-q', '-b', 'main', '.');
  git(repo, 'add', '-A');
  git(repo, 'commit', '-q', '-m', 'base');
  delete process.env.CORTEXPILOT_RUNTIME_ROOT;
  await fill(runs);
  const served = await serveHome(fillHome, '--repo', repo);
  return {
    ...served,
    runs,
    async close() {
      await served.close();
      rmSync(folder, {recursive: true, force: true});
    },
  };
}
