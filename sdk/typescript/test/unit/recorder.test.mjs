// Steps, tools, gates, redaction and values, with the in-memory double.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {inspect} from 'node:util';
import {BIN, cortex, folder, leftIn, Said, sleep} from '../kit.mjs';

const {memory} = cortex.testing;

test('a step: what it saw, said and changed, and why', async () => {
  const cx = memory({agent: 'refunds'});
  const document = {pageContent: 'x'.repeat(3000), metadata: {source: 'policy.md'}};
  const answer = await cx.step(
    'triage',
    async (s) => {
      s.saw(document);
      s.set('memory/limit', 500, {because: document});
      s.set('order/id', 'A-7', {because: ['a', 'b']});
      s.believe('safe', true, {confidence: 0.5})
        .goals(['refund'], {because: 'asked'})
        .say('done', 'assistant');
      await sleep(1);
      return 42;
    },
    {model: 'm'},
  );
  assert.equal(answer, 42);
  const [step] = cx.steps;
  assert.deepEqual(step.state_delta, {
    memory: {limit: 500, order: {id: 'A-7'}},
    beliefs: {safe: {value: true, confidence: 0.5}},
    goals: ['refund'],
  });
  const {event} = step;
  assert.equal(event.kind, 'decision');
  assert.equal(event.name, 'triage');
  assert.equal(event.model, 'm');
  assert.deepEqual([event.text, event.role], ['done', 'assistant']);
  assert.equal(event.saw[0].name, 'policy.md');
  assert.equal(event.saw[0].text.length, 2000);
  assert.equal(event.saw[0].characters, 3000);
  assert.deepEqual(
    event.reasons.map((one) => one.key),
    ['memory.limit', 'memory.order.id', 'memory.order.id', 'goals'],
  );
  assert.ok(event.because.endsWith('; a; b; asked'));
  assert.ok(event.duration_ns > 0);
  assert.deepEqual((await cx.why('order/id'))[0].because, ['a', 'b']);
  assert.deepEqual((await cx.why('memory/limit'))[0].value, 500);
  await assert.rejects(cx.why('memory/none'), /no step changed/);
});

test('steps within steps, across awaits, and not across siblings', async () => {
  const cx = memory();
  const other = memory();
  await cx.step('outer', async (outer) => {
    await Promise.all(
      [1, 2].map((i) =>
        cx.step(`inner ${i}`, async (s) => {
          await sleep(2);
          cx.note(`note ${i}`);
          other.note('elsewhere');
          assert.notEqual(s.key, outer.key);
        }),
      ),
    );
  });
  cx.note('after');
  const by = Object.fromEntries(cx.steps.map((step) => [step.event.name ?? step.event.text, step]));
  assert.equal(by['note 1'].event.within, by['inner 1'].key);
  assert.equal(by['note 2'].event.within, by['inner 2'].key);
  assert.equal(by['inner 1'].event.within, by.outer.key);
  assert.equal(by.after.event.within, undefined);
  assert.equal(other.events()[0].within, undefined);
});

test('what a step throws is its error, and goes on', async () => {
  const cx = memory();
  assert.throws(
    () =>
      cx.step('a', () => {
        throw new TypeError('no');
      }),
    TypeError,
  );
  await assert.rejects(
    cx.step('b', async () => {
      throw new RangeError('far');
    }),
    RangeError,
  );
  assert.equal(
    cx.step('c', () => 'sync'),
    'sync',
  );
  const open = cx.beginStep('d');
  assert.equal(open.end().key, open.end().key);
  const events = cx.events();
  assert.equal(events.length, 4);
  assert.deepEqual([events[0].error, events[0].error_type], ['no', 'TypeError']);
  assert.deepEqual([events[1].error, events[1].error_type], ['far', 'RangeError']);
});

test('tools are recorded before and after, with results and errors', async () => {
  const cx = memory();
  const owner = {
    base: 10,
    add: cx.tool({name: 'add'}, function (a, b) {
      return this.base + a + b;
    }),
  };
  assert.equal(owner.add(1, 2), 13);
  const lookup = cx.tool(async function lookup({id}) {
    await sleep(1);
    if (id === 2) throw new Error('gone');
    return {id};
  });
  assert.deepEqual(await lookup({id: 1}), {id: 1});
  await assert.rejects(lookup({id: 2}), /gone/);
  const events = cx.events();
  assert.deepEqual(
    events.map((event) => event.kind),
    Array(3).fill(['tool_call', 'tool_result']).flat(),
  );
  assert.deepEqual(events[0].arguments, {0: 1, 1: 2});
  assert.equal(events[1].result, 13);
  assert.equal(events[2].tool, 'lookup');
  assert.deepEqual(events[2].arguments, {id: 1});
  assert.equal(events[3].call_id, events[2].call_id);
  assert.deepEqual([events[5].status, events[5].error], ['error', 'gone']);
  assert.equal((await cx.state()).memory['tool.lookup.last'].status, 'error');
});

test('a gate allows or refuses; whatever else it does refuses', async () => {
  const cx = memory();
  let ran = 0;
  const refund = cx.tool({gate: 'refund', name: 'refund'}, ({amount}) => {
    ran++;
    return amount;
  });
  const reasonOf = async (decide) => {
    if (decide) cx.gate('refund', decide);
    try {
      await refund({amount: 9});
      return undefined;
    } catch (error) {
      assert.ok(error instanceof cortex.Refused, String(error));
      return error.reason;
    }
  };
  assert.equal(await reasonOf(), "no gate 'refund' is registered");
  assert.equal(await reasonOf(() => false), 'not allowed');
  assert.equal(await reasonOf(async () => 'too much'), 'too much');
  assert.match(await reasonOf(() => undefined), /returned undefined/);
  assert.match(await reasonOf(() => 1), /returned number/);
  assert.match(
    await reasonOf(() => {
      throw new Error('broken');
    }),
    /the gate failed: broken/,
  );
  assert.equal(ran, 0);
  assert.equal(
    await reasonOf(async (call) => call.arguments.amount === 9 && call.tool === 'refund'),
    undefined,
  );
  assert.equal(ran, 1);
  const verdicts = cx.events('decision').map((event) => event.verdict);
  assert.deepEqual(verdicts, [...Array(6).fill('refused'), 'allowed']);
  assert.equal(
    cx.events('tool_result').filter((event) => event.error_type === 'Refused').length,
    6,
  );
});

test('redaction happens before anything is kept; one that fails leaves no content', () => {
  const cx = memory({
    redact: (content) => {
      if (content.event.text === 'secret') return null;
      if (content.event.text === 'fails') throw new Error('no');
      if (content.event.text === 'later') return Promise.resolve(content);
      delete content.event.arguments;
      return {event: content.event};
    },
  });
  cx.note('secret');
  cx.record(
    {kind: 'tool_call', text: 'call', arguments: {pin: 1}},
    {state_delta: {memory: {pin: 1}}},
  );
  cx.record({text: 'fails', pin: 1}, {state_delta: {memory: {pin: 1}}});
  cx.record({text: 'later', pin: 1});
  assert.equal(cx.stats.suppressed, 1);
  assert.equal(cx.steps.length, 3);
  assert.ok(!JSON.stringify(cx.steps).includes('pin'));
  assert.match(cx.steps[1].event.text, /redact\(\) failed/);
});

test('any value becomes JSON of bounded size', () => {
  const cx = memory();
  const loop = {a: 1};
  loop.self = loop;
  let deep = 1;
  for (let i = 0; i < 100; i++) deep = [deep];
  const hostile = {
    get x() {
      throw new Error('no');
    },
    toJSON() {
      throw new Error('no');
    },
  };
  cx.record({
    loop,
    deep,
    hostile,
    bytes: new Uint8Array([1, 2]),
    date: new Date(0),
    bad: new Date(NaN),
    nan: NaN,
    big: 2n ** 64n,
    map: new Map([['k', new Set([1])]]),
    fn() {},
    symbol: Symbol('s'),
    missing: undefined,
    url: new URL('http://a/'),
    error: new Error('e'),
    ['__proto__x']: 1,
    half: '\ud800',
    long: 'y'.repeat(100_000),
    proto: JSON.parse('{"__proto__":1}'),
    many: Array.from({length: 30_000}, () => ({})),
  });
  const {event} = cx.steps[0];
  assert.equal(cx.stats.failed, 0);
  assert.match(event.loop.self, /contains itself/);
  assert.match(JSON.stringify(event.deep), /deeper than/);
  assert.match(event.hostile, /no while it was read/);
  assert.ok(event.many.length < 20_010);
  assert.equal(event.bytes.bytes, 2);
  assert.equal(event.date, '1970-01-01T00:00:00.000Z');
  assert.equal(event.nan, 'NaN');
  assert.deepEqual(event.map, {k: [1]});
  assert.equal(event.error, 'e');
  assert.match(event.long, /cut: 100000 bytes, sha256 [0-9a-f]{64}\]$/);
  assert.ok(Object.keys(event.proto).includes('__proto__'));
});

test('a step that is too long is shortened, and says so', () => {
  const cx = memory();
  cx.record(Object.fromEntries(Array.from({length: 40}, (_, i) => [`m${i}`, 'z'.repeat(60_000)])));
  const {event} = cx.steps[0];
  assert.ok(event.too_long > 2_000_000);
  assert.ok(JSON.stringify(event).length < 200_000);
  assert.equal(cx.stats.shortened, 1);
});

test('what could not be kept is counted, and the first step after it says how many', () => {
  const cx = memory({fail: true});
  cx.note('a');
  cx.note('b');
  assert.equal(cx.stats.dropped, 2);
  cx.fail = false;
  cx.note('c');
  assert.deepEqual(
    cx.events().map((event) => event.text),
    ['2 steps were not recorded: this double was told to fail', 'c'],
  );
  assert.equal(cx.events()[0].dropped, 2);
});

test('calls that cannot mean anything say what was expected', () => {
  const wrong = (call, message) =>
    assert.throws(call, (error) => {
      assert.ok(error instanceof cortex.UsageError, String(error));
      assert.match(error.message, message);
      return true;
    });
  const {init} = cortex;
  const spoolDir = false;
  wrong(() => init({}), /CORTEX_AGENT is not set/);
  wrong(() => init({agent: ''}), /1 to 200 bytes/);
  wrong(() => init({agent: 'a\nb', spoolDir}), /control character/);
  wrong(() => init({agent: 'otel', spoolDir}), /Cortex's own/);
  wrong(() => init({agent: 'a', url: 'ftp://x', spoolDir}), /url: found 'ftp:/);
  wrong(() => init({agent: 'a', url: 'nonsense', spoolDir}), /expected http/);
  wrong(() => init({agent: 'a', url: 'http://u:p@h', spoolDir}), /name or password/);
  wrong(() => init({agent: 'a', token: 'two words', spoolDir}), /token: expected/);
  wrong(() => init({agent: 'a', fsync: 'now', spoolDir}), /fsync: found 'now'/);
  wrong(() => init({agent: 'a', spoolBytes: 1, spoolDir}), /spoolBytes: found 1/);
  wrong(() => init({agent: 'a', timeoutMs: 'x', spoolDir}), /timeoutMs/);
  wrong(() => init({agent: 'a', keyFile: true, spoolDir}), /there is no key/);
  wrong(() => init({agent: 'a', keyFile: '/nowhere', spoolDir}), /cannot read the agent's key/);
  wrong(() => init({agent: 'a', spoolDir: '/proc/nowhere'}), /spoolDir: cannot write/);
  wrong(
    () => init({agent: 'a', redakt: (x) => x}),
    /init: no option 'redakt', expected one of agent/,
  );
  wrong(() => init(null), /init: found null, expected an object/);
  wrong(() => init('refunds'), /init: found 'refunds', expected an object/);
  wrong(() => init({agent: 5}), /agent: found 5, expected a text/);
  wrong(() => init({agent: 'a', url: new URL('http://h')}), /url: found an object \(URL\)/);
  wrong(() => init({agent: 'a', token: ['x']}), /token: found an array, expected a text/);
  wrong(() => init({agent: 'a', key: 'a.key'}), /key: found 'a.key', expected a SigningKey/);
  wrong(() => memory({redakt: (x) => x}), /memory: no option 'redakt'/);
  const cx = memory();
  wrong(() => cx.step('x'), /expected a function/);
  wrong(() => cx.step('x', () => 1, null), /add: found null/);
  wrong(() => cx.tool(null, () => 1), /tool: found null/);
  wrong(
    () => cx.tool({gates: 'g'}, () => 1),
    /tool: no option 'gates', expected one of name, gate/,
  );
  wrong(() => cx.record('text'), /record: found 'text', expected an event/);
  wrong(() => cx.record({}, {stateDelta: {}}), /record: no option 'stateDelta'/);
  wrong(() => cx.record({}, {parents: '@a'}), /parents: found '@a', expected an array/);
  for (const timestamp of [Date.now(), NaN, -1, new Date(), '2020']) {
    wrong(() => cx.record({}, {timestamp}), /timestamp: found .*Date.now\(\) \/ 1000/);
  }
  wrong(() => cx.beginStep('x').set(undefined, 1), /path: found undefined/);
  wrong(() => cx.beginStep('x').set('a', 1, null), /set: found null/);
  wrong(() => cx.beginStep('x').set('a', 1, {reason: 'b'}), /set: no option 'reason'/);
  wrong(() => cx.beginStep('x').goals('pay'), /goals: found 'pay', expected an array/);
  wrong(() => cx.beginStep('x').follow(undefined), /follow: found undefined, expected a Ref/);
  wrong(() => cx.tool({gate: 'g'}), /expected a function/);
  wrong(
    () => cx.beginStep('x', {kind: 'thought'}),
    /kind: found 'thought', expected one of message/,
  );
  wrong(() => cx.beginStep('x', {__seal: 1}), /begins with __/);
  wrong(() => cx.beginStep('x').set('memory', 1), /path: found 'memory'/);
  wrong(() => cx.beginStep('x').set('a/__proto__/b', 1), /path: found/);
  wrong(() => cortex.instrumentOpenAI({}, cx), /expected a client of the package openai/);
  wrong(() => cortex.instrumentAnthropic({}, cx), /@anthropic-ai\/sdk/);
  wrong(() => cortex.instrumentMcp({}, {cx}), /@modelcontextprotocol\/sdk/);
  wrong(() => cortex.current(), /call init/);
  assert.deepEqual(cx.steps, []);
});

test('a time to wait that is no number is an error, not a wait without end', async (t) => {
  const cx = cortex.init({
    agent: 'a',
    url: 'http://127.0.0.1:1',
    spoolDir: false,
    keyFile: false,
    log: {warn() {}, error() {}},
  });
  t.after(() => cx.close(0));
  cx.note('waits');
  for (const wrong of [NaN, '500', {timeoutMs: 500}, null]) {
    for (const call of [
      () => cx.flush(wrong),
      () => cx.close(wrong),
      () => memory().flush(wrong),
    ]) {
      await assert.rejects(call, {name: 'UsageError', message: /expected milliseconds, a number/});
    }
  }
  await assert.rejects(cx.flush(-1), {name: 'NotDelivered', pending: 1});
  for (const wrong of [undefined, '', 5]) {
    await assert.rejects(cx.why(wrong), {name: 'UsageError', message: /why: found .*memory\/NAME/});
  }
});

test('what waits in memory is not promised to the next start', async () => {
  const said = new Said();
  const options = {agent: 'a', url: 'http://127.0.0.1:1', spoolDir: false, keyFile: false};
  const cx = cortex.init({...options, log: said});
  cx.note('waits');
  await cx.close(1);
  assert.ok(said.has('what waits in memory is lost when the process ends'), said.texts.join('\n'));
  assert.ok(!said.has('the next start'));
});

test('steps and recorders that are printed or recorded do not show the token', async (t) => {
  const token = 'cortex_not-to-be-seen';
  const options = {agent: 'a', url: 'http://127.0.0.1:1', spoolDir: folder(t), keyFile: false};
  const cx = cortex.init({...options, token, log: new Said()});
  t.after(() => cx.close(0));
  // What an arrow function returns without anybody having meant it.
  const triage = cx.tool({name: 'triage'}, () => cx.step('x', (s) => s.set('limit', 500)));
  const step = triage();
  cx.note('all', {cx, step});
  const request = cx.flush(0).catch(() => {});
  for (const depth of [2, 20]) {
    for (const value of [cx, step, {cx}]) {
      const text = inspect(value, {depth, showHidden: true});
      assert.ok(!text.includes(token), text);
    }
  }
  assert.match(inspect(step), /agent: 'a'.*limit: 500/s);
  assert.deepEqual(JSON.parse(JSON.stringify(step)), {agent: 'a', key: step.key});
  assert.equal(JSON.parse(JSON.stringify(cx)).agent, 'a');
  await request;
  const kept = leftIn(options.spoolDir).filter((name) => name.endsWith('.seg'));
  const where = fs.readdirSync(options.spoolDir)[0];
  const lines = kept.map((name) =>
    fs.readFileSync(path.join(options.spoolDir, where, name), 'utf8'),
  );
  const text = lines.join('');
  assert.equal(text.split('\n').length, 5);
  assert.ok(!text.includes(token), 'the token is in what is sent');
  const result = `"result":{"agent":"a","key":"${step.key}"}`;
  assert.ok(text.includes(result), text);
});

test('keys: those of `cortex key new`, PEM, and new ones', (t) => {
  const where = folder(t);
  const note = path.join(where, 'note.key');
  execFileSync(BIN, ['key', 'new', '--name', 'refunds', note]);
  assert.equal(cortex.loadKey(note, 'refunds').publicKey.length, 32);
  const made = cortex.newKey(path.join(where, 'made.key'), 'refunds');
  assert.equal(
    cortex.loadKey(path.join(where, 'made.key'), 'refunds').publicKeyBase64,
    made.publicKeyBase64,
  );
  assert.equal(fs.statSync(path.join(where, 'made.key')).mode & 0o777, 0o600);
  assert.throws(() => cortex.newKey(path.join(where, 'made.key'), 'refunds'), /never overwritten/);
  assert.throws(() => cortex.newKey(path.join(where, 'x.key'), 'a b'), /no spaces/);
  fs.writeFileSync(path.join(where, 'bad.key'), 'hello');
  assert.throws(() => cortex.loadKey(path.join(where, 'bad.key'), 'a'), /expected a key file/);
  fs.writeFileSync(path.join(where, 'bad.key'), 'PRIVATE+KEY+a+00000000+AAAA\n');
  assert.throws(() => cortex.loadKey(path.join(where, 'bad.key'), 'a'), /not an Ed25519 key/);
});
