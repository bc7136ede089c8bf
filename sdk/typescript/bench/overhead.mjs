#!/usr/bin/env node
// overhead.mjs [STEPS] - microseconds that recording one step costs the program, measured around each
// call, with a server on loopback that takes the steps at the same time. Needs CX_SDK_PACKAGE (the built
// package), CX_ROOT and CORTEX_BIN.
import {cortex, Server} from '../test/kit.mjs';

const count = Number(process.argv[2] ?? 5000);
const cleanups = [];
const t = {after: (f) => cleanups.push(f)};
const document = 'the limit is 500';
const kinds = [
  ['note', (cx) => () => cx.note('hello')],
  [
    'step: saw, set, because',
    (cx) => (n) =>
      cx.step('triage', (s) => {
        s.saw(document);
        s.set('memory/limit', n, {because: document});
      }),
  ],
  ['tool: two steps', (cx) => cx.tool({name: 'refund'}, (n) => n)],
];
const rows = [
  ...kinds.map(([name, make]) => [name, make, {}]),
  [
    'note, signed',
    kinds[0][1],
    {key: new cortex.SigningKey(new Uint8Array(32).fill(1), 'refunds')},
  ],
  ["note, fsync: 'never'", kinds[0][1], {fsync: 'never'}],
  ["note, fsync: 'always'", kinds[0][1], {fsync: 'always'}, count / 10],
];
const server = await Server.start(t);
const {key} = rows[3][2];
server.command('key', 'add', '--id', key.keyId, '--public-key', key.publicKeyBase64);
console.log(
  'µs a call'.padEnd(30) +
    ['min', 'median', 'p99', 'max'].map((name) => name.padStart(10)).join(''),
);
for (const [name, make, options, steps = count] of rows) {
  const cx = cortex.init(server.options_('refunds', options));
  const call = make(cx);
  const times = [];
  for (let n = 0; n < steps; n++) {
    const before = process.hrtime.bigint();
    call(n);
    times.push(Number(process.hrtime.bigint() - before) / 1000);
    if (n % 10 === 9) await new Promise((resolve) => setImmediate(resolve)); // as a program that awaits
  }
  await cx.flush(300_000);
  if (cx.stats.dropped + cx.stats.rejected > 0) throw new Error(JSON.stringify(cx.stats));
  await cx.close();
  times.sort((a, b) => a - b);
  const shown = [times[0], times[steps >> 1], times[Math.floor(steps * 0.99)], times[steps - 1]];
  console.log(name.padEnd(30) + shown.map((value) => value.toFixed(1).padStart(10)).join(''));
}
for (const cleanup of cleanups.reverse()) await cleanup();
