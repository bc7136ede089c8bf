// docs/sdk-typescript.md: its examples run, in their order, as one program.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {BIN, folder, PACKAGE, ROOT, Server} from '../kit.mjs';

/** A folder in which the package is installed. */
function installed(t) {
  const where = folder(t);
  fs.mkdirSync(path.join(where, 'node_modules', '@cortex'), {recursive: true});
  fs.symlinkSync(PACKAGE, path.join(where, 'node_modules', '@cortex', 'recorder'));
  return where;
}

function runProgram(where, file, server) {
  const env = {
    ...process.env,
    CORTEX_URL: server.url,
    CORTEX_TOKEN: server.token,
    CORTEX_SPOOL: path.join(where, 'spool'),
  };
  const done = spawnSync(process.execPath, [file], {
    cwd: where,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(done.status, 0, done.stderr);
  assert.equal(done.stderr, '');
  return done.stdout;
}

test('the examples of the page', async (t) => {
  const page = fs.readFileSync(path.join(ROOT, 'docs', 'sdk-typescript.md'), 'utf8');
  const blocks = [...page.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((match) => match[1]);
  assert.ok(blocks.length >= 5);
  const server = await Server.start(t);
  const where = installed(t);
  fs.writeFileSync(path.join(where, 'page.mjs'), blocks.join('\n'));
  const out = runProgram(where, 'page.mjs', server);
  assert.match(
    out,
    /^120 for A-7\n[0-9a-f]{64}\nundefined -> 500 because \[ 'Refunds are limited to 500.' \]\n/,
  );
  assert.match(out, /\ntriage \[ 'policy' \]\n$/);
  const command = /^cortex-verify (.*)$/m.exec(out)[1].split(' ');
  const said = execFileSync(path.join(path.dirname(BIN), 'cortex-verify'), command, {
    cwd: where,
    encoding: 'utf8',
  });
  assert.match(said, /holds/);
  assert.equal(await server.count('clerk'), 1);
});

test('the package with require', async (t) => {
  const server = await Server.start(t);
  const where = installed(t);
  fs.writeFileSync(
    path.join(where, 'program.cjs'),
    `
    const {init, Refused} = require('@cortex/recorder');
    const cx = init({agent: 'refunds'});
    const refund = cx.tool({gate: 'none', name: 'refund'}, () => 'paid');
    refund(1).catch((error) => console.log(error instanceof Refused, error.message));
  `,
  );
  const out = runProgram(where, 'program.cjs', server);
  assert.equal(out, "true refund: gate 'none' refused the call: no gate 'none' is registered\n");
  assert.equal(await server.count(), 3);
});
