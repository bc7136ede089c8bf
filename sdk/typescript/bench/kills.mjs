#!/usr/bin/env node
// kills.mjs [KILLS] - kills recording processes at random moments and counts lost steps.
//
// Each process records steps and writes the name of a step to a pipe after the call that recorded it
// has returned. It is killed (SIGKILL) 0 to 60 ms after its first step, also while it adopts and
// delivers what the former ones left. One kill in 50 is the server's. In the end everything is
// delivered and the server is asked: a step that was told and is not there is lost; more nodes than
// names means that one is there twice. Exit code 1 when there is either. Needs what overhead.mjs needs.
import {spawn} from 'node:child_process';
import {cortex, Server, until} from '../test/kit.mjs';

const kills = Number(process.argv[2] ?? 500);
const cleanups = [];
const t = {after: (f) => cleanups.push(f)};
const source = `
  const cortex = require(process.argv[1]);
  const fs = require('node:fs');
  const {number, options} = JSON.parse(process.argv[2]);
  const cx = cortex.init({...options, log: {warn() {}, error() {}}});
  let count = 0;
  setInterval(() => {
    for (let i = 0; i < 3; i++) {
      const name = number + '-' + count++;
      cx.record({kind: 'note', text: name, padding: 'x'.repeat((count * 37) % 900)}, {state_delta: {memory: {[name]: 1}}});
      fs.writeSync(1, name + '\\n');
    }
  }, 1);
`;

/** What the process said that it recorded. */
function killOne(number, options, ms) {
  return new Promise((resolve) => {
    const words = JSON.stringify({number, options});
    const entry = `${process.env.CX_SDK_PACKAGE}/dist/index.js`;
    const child = spawn(process.execPath, ['-e', source, entry, words], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout.on('data', (data) => {
      if (out === '') setTimeout(() => child.kill('SIGKILL'), ms);
      out += data;
    });
    child.on('close', () => resolve(out.split('\n').slice(0, -1)));
  });
}

const server = await Server.start(t);
const {log: _, ...options} = server.options_('refunds');
const told = [];
let serverKills = 0;
const started = Date.now();
for (let number = 0; number < kills; number++) {
  told.push(...(await killOne(number, options, Math.random() * 60)));
  if (Math.random() < 0.02) {
    await server.end('SIGKILL');
    await server.begin();
    serverKills++;
  }
}
const cx = cortex.init({...server.options_('refunds')});
await until(() => cx._allDelivered(), 300_000);
const {rejected, damaged} = cx.stats;
const [names, nodes] = [await server.marks(), await server.count()];
const lost = told.filter((name) => !names.has(name)).length;
console.log(
  `${kills} kills of the recorder, ${serverKills} of the server, ${Math.round((Date.now() - started) / 1000)} s\n` +
    `${told.length} steps were recorded, ${nodes} are on the server: ${lost} lost, ${nodes - names.size} twice, ` +
    `${rejected} rejected, ${damaged} damaged`,
);
await cx.close();
for (const cleanup of cleanups.reverse()) await cleanup();
process.exitCode =
  lost + (nodes - names.size) + rejected + damaged > 0 || told.length === 0 ? 1 : 0;
