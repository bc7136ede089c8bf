// The package with a real server: delivery, receipts, questions, keys, outages, ends.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {test} from 'node:test';
import {BIN, cortex, folder, leftIn, program, Said, Server, sleep, until} from '../kit.mjs';

const verify = path.join(path.dirname(BIN), 'cortex-verify');

function verifyReceipt(receipt, file) {
  const words = receipt.save(file).split(' ');
  assert.equal(words[0], 'cortex-verify');
  return (change = (word) => word) => {
    try {
      execFileSync(verify, words.slice(1).map(change), {stdio: 'pipe'});
      return 0;
    } catch (error) {
      return error.status;
    }
  };
}

test('a step with its reason, why, state, and a receipt that cortex-verify accepts', async (t) => {
  const server = await Server.start(t);
  const cx = server.client(t);
  const document = {text: 'Refunds are limited to 500.', metadata: {source: 'policy.md'}};
  await cx.step('triage', async (s) => {
    s.saw(document);
    await sleep(1);
    s.set('memory/limit', 500, {because: document});
  });
  const receipt = await cx.flush();
  assert.equal(receipt.delivered, 1);
  assert.equal(receipt.unproven, undefined);
  const check = verifyReceipt(receipt, path.join(folder(t), 'receipt.proof'));
  assert.equal(check(), 0);
  assert.equal(
    check((word) => (word === receipt.root ? 'ab'.repeat(32) : word)),
    1,
  );
  assert.equal(
    check((word) => (word === receipt.leaf ? 'ab'.repeat(32) : word)),
    1,
  );
  const [change] = await cx.why('memory/limit');
  assert.equal(change.value, 500);
  assert.deepEqual(change.because, ['Refunds are limited to 500.']);
  assert.equal((await cx.state()).memory.limit, 500);
  const [node] = await server.nodes();
  assert.equal(node.hash, receipt.hash);
  assert.equal(node.event.kind, 'decision');
  assert.equal(cx.stats.pending, 0);
});

test('a receipt of a signed checkpoint', async (t) => {
  const server = await Server.start(t);
  const cx = server.client(t);
  cx.note('one');
  await cx.flush();
  const keys = folder(t);
  const key = server.run('key', 'new', '--name', 'log/refunds', path.join(keys, 'log.key')).trim();
  server.command('checkpoint', '--actor', 'refunds', '--sign', path.join(keys, 'log.key'));
  const receipt = await cx.flush();
  assert.ok(receipt.checkpoint, JSON.stringify(receipt));
  const file = path.join(keys, 'receipt');
  const words = receipt.save(file).replace('KEY', key).split(' ');
  assert.match(execFileSync(verify, words.slice(1), {encoding: 'utf8'}), /holds/);
});

test('what was recorded while nothing listened is delivered once something does', async (t) => {
  const server = await Server.start(t);
  await server.end();
  const cx = server.client(t, 'refunds', {exitTimeoutMs: 0});
  const started = process.hrtime.bigint();
  for (let i = 0; i < 300; i++) cx.record({text: `${i}`}, {state_delta: {memory: {[`m${i}`]: i}}});
  const ms = Number(process.hrtime.bigint() - started) / 1e6;
  assert.ok(ms < 3000, `recording took ${ms} ms`);
  await assert.rejects(cx.flush(300), (error) => {
    assert.ok(error instanceof cortex.NotDelivered);
    assert.equal(error.pending, 300);
    assert.match(error.message, /is 'cortex serve' running/);
    return true;
  });
  assert.ok(cx.log.has('cannot deliver now'));
  await server.begin();
  assert.equal((await cx.flush(30_000)).delivered, 300);
  assert.equal(await server.count(), 300);
  assert.equal((await server.marks()).size, 300);
});

test('the server is killed again and again while steps come', async (t) => {
  const server = await Server.start(t);
  const cx = server.client(t);
  for (let i = 0; i < 4; i++) {
    for (let k = 0; k < 100; k++)
      cx.record({text: 'x'}, {state_delta: {memory: {[`${i}-${k}`]: 1}}});
    await sleep(15 * i);
    await server.end('SIGKILL');
    await server.begin();
  }
  await cx.flush(60_000);
  assert.equal(await server.count(), 400); // none lost, none twice
  assert.equal((await server.marks()).size, 400);
});

test('an answer that is lost: the steps are sent again, and are there once', async (t) => {
  const server = await Server.start(t);
  let lost = 0;
  const proxy = http.createServer((request, response) => {
    const target = http.request(
      server.url + request.url,
      {method: request.method, headers: {...request.headers, host: server.listen}},
      (answer) => {
        if (request.method === 'POST' && lost < 3) {
          lost++;
          answer.resume();
          answer.on('end', () => request.socket.destroy());
          return;
        }
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(target);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => proxy.close());
  const cx = server.client(t, 'refunds', {url: `http://127.0.0.1:${proxy.address().port}`});
  for (let i = 0; i < 20; i++) cx.note(`${i}`);
  await cx.flush(30_000);
  assert.ok(lost >= 2);
  assert.equal(await server.count(), 20);
  await cx.close();
});

test('a wrong token and a server that is something else: steps stay', async (t) => {
  const server = await Server.start(t);
  const wrong = server.client(t, 'refunds', {token: 'nonsense', exitTimeoutMs: 0});
  wrong.note('kept');
  await assert.rejects(wrong.flush(400), cortex.NotDelivered);
  assert.ok(wrong.log.has('check CORTEX_TOKEN'));
  await wrong.close(0);
  const right = server.client(t, 'refunds');
  right.note('newer');
  await right.flush();
  await until(async () => (await server.count()) === 2); // adopted from the former
  const other = http.createServer((_, response) => response.end('{"hello":1}'));
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const lost = server.client(t, 'refunds', {url: `http://127.0.0.1:${other.address().port}`});
  lost.note('kept');
  await assert.rejects(lost.flush(300), /does not answer as a Cortex server does/);
  assert.equal(lost.stats.rejected, 0);
  await lost.close(0);
});

test('what the server does not take is kept aside, and does not hold the others up', async (t) => {
  const server = await Server.start(t);
  const cx = server.client(t);
  cx.note('before');
  cx.record({text: 'bad'}, {state_delta: {nowhere: 1}});
  cx.record({text: 'linked'}, {parents: ['#99']});
  cx.note('after');
  const receipt = await cx.flush();
  assert.equal(receipt.rejected, 1);
  assert.deepEqual(
    (await server.events()).map((event) => event.text),
    ['before', 'linked', 'after'],
  );
  const spool = path.join(server.home, '..', 'spool');
  const [name] = fs.readdirSync(spool);
  const kept = fs
    .readFileSync(path.join(spool, name, 'rejected.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map(JSON.parse);
  assert.equal(kept.length, 1);
  assert.equal(kept[0].step.event.text, 'bad');
  assert.ok(cx.log.has('does not take a step'));
});

test('agents that hand over: parents by key, also from another recorder', async (t) => {
  const server = await Server.start(t);
  const desk = server.client(t, 'desk');
  const clerk = server.client(t, 'clerk');
  const ref = desk.handoff('clerk', 'please check order A-7');
  await clerk.step('check', (s) => {
    s.saw(ref);
    s.set('memory/checked', true, {because: ref});
  });
  await Promise.all([desk.flush(), clerk.flush()]);
  const [[handed], [checked]] = [await server.nodes('desk'), await server.nodes('clerk')];
  assert.deepEqual(checked.parents, [handed.hash]);
  assert.match(checked.event.because, /^desk\//);
});

test('signed steps: the key is registered, or waits for approval', async (t) => {
  const server = await Server.start(t, '--open-signed');
  const file = path.join(folder(t), 'agent.key');
  const key = cortex.newKey(file, 'refunds');
  const scopes = ['trace:write', 'trace:read'].flatMap((scope) => ['--scope', scope]);
  const admin = server
    .command('token', 'add', ...scopes, '--scope', 'key:admin', '--name', 'a')
    .trim();
  const cx = server.client(t, 'refunds', {keyFile: file, keyId: key.keyId, token: admin});
  cx.note('signed');
  await cx.flush(20_000);
  const [node] = await server.nodes();
  assert.equal(node.event.__signature.key_id, key.keyId);
  // A token that may only write: the key waits, and so do the steps.
  const token = server.command('token', 'add', ...scopes, '--name', 'w').trim();
  const clerkFile = path.join(folder(t), 'clerk.key');
  const clerkKey = cortex.newKey(clerkFile, 'clerk');
  const clerk = server.client(t, 'clerk', {keyFile: clerkFile, token, exitTimeoutMs: 0});
  clerk.note('waits');
  await assert.rejects(clerk.flush(1500), cortex.NotDelivered);
  assert.ok(clerk.log.has(`cortex key approve ${clerkKey.keyId}`), clerk.log.texts.join('\n'));
  server.command('key', 'approve', clerkKey.keyId);
  assert.equal((await clerk.flush(30_000)).delivered, 1);
});

test('a process that ends by itself delivers, and is not kept alive', async (t) => {
  const server = await Server.start(t);
  const {log: _, ...options} = server.options_('refunds');
  const ended = await program(
    `const cx = cortex.init(words); cx.note('one'); cx.note('two');`,
    options,
  ).ended;
  assert.equal(ended.code, 0, ended.err);
  assert.equal(await server.count(), 2);
  assert.deepEqual(leftIn(path.join(server.home, '..', 'spool')), []);
  const idle = await program(`cortex.init({...words, url: 'http://127.0.0.1:9'});`, options).ended;
  assert.equal(idle.code, 0, idle.err);
});

test('SIGTERM delivers and ends the process with the signal; a handler of the program stays in charge', async (t) => {
  const server = await Server.start(t);
  const {log: _, ...options} = server.options_('refunds');
  const one = program(
    `const cx = cortex.init(words); setInterval(() => {}, 1000); cx.note('one'); console.log('ready');`,
    options,
  );
  await one.says('ready');
  one.child.kill('SIGTERM');
  assert.equal((await one.ended).signal, 'SIGTERM');
  assert.equal(await server.count(), 1);
  const two = program(
    `const cx = cortex.init(words); setInterval(() => {}, 1000); cx.note('two');
     process.on('SIGTERM', async () => { cx.note('three'); await cx.close(5000); process.exit(7); });
     console.log('ready');`,
    options,
  );
  await two.says('ready');
  two.child.kill('SIGTERM');
  assert.equal((await two.ended).code, 7);
  assert.equal(await server.count(), 3);
});

test('process.exit() and a kill leave steps to the next process, also `cortex-recorder deliver`', async (t) => {
  const server = await Server.start(t);
  const {log: _, ...options} = server.options_('refunds');
  const one = await program(
    `const cx = cortex.init(words); cx.note('one'); process.exit(0);`,
    options,
  ).ended;
  assert.equal(one.code, 0);
  const two = program(
    `const cx = cortex.init(words); cx.note('two'); console.log('ready'); for (;;);`,
    options,
  );
  await two.says('ready');
  two.child.kill('SIGKILL');
  await two.ended;
  const cli = path.join(process.env.CX_SDK_PACKAGE, 'dist', 'cli.js');
  const env = {...process.env, CORTEX_TOKEN: server.token};
  const run = (...words) =>
    execFileSync(process.execPath, [cli, ...words], {env, encoding: 'utf8'});
  assert.match(
    run('status', '--spool', options.spoolDir),
    /refunds-[0-9a-f]{12}: \d{3,} bytes in segments/,
  );
  assert.match(
    run('deliver', 'refunds', '--url', server.url, '--spool', options.spoolDir),
    /nothing waits for refunds; 0 rejected/,
  );
  assert.equal(await server.count(), 2);
});

test('worker threads and forked processes record through spools of their own', async (t) => {
  const server = await Server.start(t);
  const {log: _, ...options} = server.options_('refunds');
  const ended = await program(
    `
    import {Worker} from 'node:worker_threads';
    import {spawn} from 'node:child_process';
    const cx = cortex.init(words);
    const entry = ${JSON.stringify(path.join(process.env.CX_SDK_PACKAGE, 'dist', 'index.js'))};
    const source = 'const cortex = require(' + JSON.stringify(entry) + ');' +
      'const cx = cortex.init(' + JSON.stringify(words) + ');' +
      'for (let i = 0; i < 50; i++) cx.note(String(i));';
    const ends = [];
    for (let i = 0; i < 3; i++) {
      ends.push(new Promise((resolve) => new Worker(source, {eval: true, execArgv: []}).on('exit', resolve)));
      ends.push(new Promise((resolve) => spawn(process.execPath, ['-e', source]).on('close', resolve)));
      for (let k = 0; k < 50; k++) cx.note('main');
    }
    await Promise.all(ends);
    await cx.flush();
    `,
    options,
  ).ended;
  assert.equal(ended.code, 0, ended.err);
  await until(async () => (await server.count()) === 450);
});
