// The spool without a server: kills, adoption, bounds, damage.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {cortex, folder, program, Said, sleep, until} from '../kit.mjs';

const NOWHERE = 'http://127.0.0.1:9'; // nothing listens on the discard port

function start(t, spoolDir, more = {}) {
  const cx = cortex.init({
    agent: 'a',
    url: NOWHERE,
    spoolDir,
    keyFile: false,
    token: 't',
    exitTimeoutMs: 0,
    log: new Said(),
    ...more,
  });
  t.after(() => cx.close(0));
  return cx;
}

function lines(spoolDir) {
  const [name] = fs.readdirSync(spoolDir);
  const inner = path.join(spoolDir, name);
  return fs
    .readdirSync(inner)
    .filter((file) => file.endsWith('.seg'))
    .sort()
    .flatMap((file) => fs.readFileSync(path.join(inner, file), 'latin1').split('\n').slice(0, -1));
}

const owners = (spoolDir) => {
  const [name] = fs.readdirSync(spoolDir);
  return fs.readdirSync(path.join(spoolDir, name)).filter((file) => file.endsWith('.owner'));
};

test('a step is on the disk when the call returns, with its check sum', (t) => {
  const spool = folder(t);
  const cx = start(t, spool);
  for (const fsync of ['always', 'never']) start(t, folder(t), {fsync}).note('x');
  cx.note('one');
  const [line] = lines(spool);
  const [check, step] = [line.slice(0, 8), line.slice(9)];
  assert.equal(JSON.parse(step).event.text, 'one');
  assert.equal(check, crc32(step).toString(16).padStart(8, '0'));
  assert.equal(cx.stats.recorded, 1);
  assert.equal(cx.stats.pending, 1);
});

/** By bits: no table, nothing of the package. */
function crc32(text) {
  let value = 0xffffffff;
  for (const byte of Buffer.from(text, 'latin1')) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}

test('a spool that is full drops new steps, keeps the old ones, and counts', (t) => {
  const cx = start(t, folder(t), {spoolBytes: 64 << 10});
  for (let i = 0; i < 1000; i++) cx.note('x'.repeat(500));
  const {recorded, dropped} = cx.stats;
  assert.equal(recorded + dropped, 1000);
  assert.ok(recorded > 50 && recorded < 130, `${recorded}`);
  assert.ok(cx.log.has('the spool is full (65536 bytes)'));
  const memory = start(t, false, {spoolBytes: 64 << 10});
  for (let i = 0; i < 1000; i++) memory.note('x'.repeat(500));
  assert.ok(memory.stats.recorded > 50 && memory.stats.recorded < 130);
});

test('a part is adopted when its process was killed, and not before', async (t) => {
  const spool = folder(t);
  const source = `const cx = cortex.init(words); cx.note('of the child'); console.log('ready'); setInterval(() => {}, 1000);`;
  const words = {agent: 'a', url: NOWHERE, spoolDir: spool, keyFile: false, exitTimeoutMs: 0};
  const child = program(source, words);
  await child.says('ready');
  const before = owners(spool);
  assert.equal(before.length, 1);
  const [name] = before[0].split('.');
  const cx = start(t, spool);
  await until(() => cx.log.has('cannot deliver now') || cx._allDelivered());
  assert.deepEqual(owners(spool), before); // it lives
  child.child.kill('SIGKILL');
  await child.ended;
  cx._closeNow();
  const next = start(t, spool);
  await until(() => owners(spool).length === 1 && owners(spool)[0] !== before[0]);
  assert.equal(owners(spool)[0].split('.')[0], name);
  next._closeNow(); // what it adopted is adopted again
  const last = start(t, spool);
  await until(() => owners(spool)[0].split('.')[1] !== name && last.log.has('cannot deliver now'));
  assert.equal(lines(spool).length, 1);
});

test('a path that is too long for a socket works all the same', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const spool = path.join(folder(t), 'x'.repeat(100));
  const first = start(t, spool);
  first.note('one');
  const before = owners(spool);
  const second = start(t, spool);
  await until(() => second._allDelivered());
  assert.deepEqual(owners(spool), before);
  first._closeNow();
  const third = start(t, spool);
  await until(() => owners(spool).length === 1 && owners(spool)[0] !== before[0]);
  third.note('two');
  assert.equal(lines(spool).length, 2);
});

test('the ESM and the CommonJS build in one process share hooks and the current recorder', async () => {
  const ended = await program(
    `
    import {createRequire} from 'node:module';
    const other = createRequire(import.meta.url)(${JSON.stringify(path.join(process.env.CX_SDK_PACKAGE, 'dist', 'index.js'))});
    const a = cortex.init(words);
    const b = other.init({...words, agent: 'b'});
    if (cortex.current() !== b || other.current() !== b) throw new Error('two registries');
    if (process.listenerCount('SIGTERM') !== 1) throw new Error('two handlers');
    await a.close(0);
    await b.close(0);
    if (process.listenerCount('SIGTERM') !== 0) throw new Error('a handler is left');
    `,
    {agent: 'a', url: NOWHERE, spoolDir: false, keyFile: false},
  ).ended;
  assert.equal(ended.code, 0, ended.err);
});

test('recording after close is counted as dropped', async (t) => {
  const cx = start(t, folder(t));
  await cx.close(0);
  cx.note('late');
  assert.equal(cx.stats.dropped, 1);
  assert.ok(cx.log.has('the recorder is closed'));
  await sleep(1);
});

test('a folder that is removed is made again', async (t) => {
  const spool = folder(t);
  const cx = start(t, spool);
  cx.note('lost');
  const [name] = fs.readdirSync(spool);
  fs.rmSync(path.join(spool, name), {recursive: true});
  await until(() => cx.stats.damaged > 0);
  cx.note('kept');
  assert.equal(lines(spool).length, 1);
  assert.equal(owners(spool).length, 1);
});
