// tests/vectors/sdk/steps.json: the same bytes, digests and signatures as the library's.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {cortex, ROOT} from '../kit.mjs';

const vectors = JSON.parse(
  fs.readFileSync(path.join(ROOT, 'tests/vectors/sdk/steps.json'), 'utf8'),
);
// The others have numbers like 1.0 or 2^64, which JSON.parse cannot hold as they are spelled.
const cases = vectors.cases.filter((one) => one.doubles);
const key = new cortex.SigningKey(Buffer.from(vectors.seed, 'hex'), 'refunds', vectors.key_id);

test("bytes and digests are the library's", () => {
  assert.ok(cases.length >= 12, `${cases.length} cases`);
  for (const one of cases) {
    const step = JSON.parse(one.step);
    assert.equal(cortex.toSign(step), one.signed, one.name);
    assert.equal(cortex.contentDigest(step), one.content_sha256, one.name);
    const signed = {...step, signature: {key_id: 'k', signature: 'x'}};
    assert.equal(cortex.toSign(signed), one.signed, one.name);
    assert.equal(cortex.contentDigest({...signed, key: 'other'}), one.content_sha256, one.name);
  }
});

test('what is signed reads back as itself, so the server finds the same bytes', () => {
  for (const one of vectors.cases) {
    const text = one.signed.slice(one.signed.indexOf('\n') + 1);
    const again = cortex.canonical(JSON.parse(text));
    if (one.doubles) assert.equal(again, text, one.name);
    assert.equal(cortex.canonical(JSON.parse(again)), again, one.name);
  }
});

test('signatures are the same', () => {
  assert.equal(Buffer.from(key.publicKey).toString('hex'), vectors.public_key);
  for (const one of vectors.cases) {
    const expected = {key_id: vectors.key_id, signature: one.signature};
    assert.deepEqual(key.signatureOf(one.signed), expected, one.name);
  }
});

test('a recorder signs these bytes, and only for the agent of its key', () => {
  const cx = cortex.testing.memory({agent: 'refunds', key});
  let tried = 0;
  for (const one of cases) {
    const step = JSON.parse(one.step);
    if (step.agent !== 'refunds' || step.timestamp === undefined || step.key === undefined)
      continue;
    cx.clear();
    cx._recordAs(step.key, step.event ?? {}, {
      state_delta: step.state_delta,
      timestamp: step.timestamp,
    });
    assert.equal(cx.steps[0].signature.signature, one.signature, one.name);
    tried++;
  }
  assert.ok(tried >= 3);
  cx.record({}, {agent: 'clerk'});
  assert.equal(cx.steps.at(-1).signature, undefined);
});

test('numbers are spelled as the format has them', () => {
  const spelled = {
    0.0001: '0.0001',
    0.00001: '1e-05',
    1.5e-7: '1.5e-07',
    1e-300: '1e-300',
    0.1: '0.1',
    1e21: '1e+21',
    1.5e300: '1.5e+300',
    123456789012: '123456789012',
    '-0.00012': '-0.00012',
    '-1e-9': '-1e-09',
  };
  for (const [value, text] of Object.entries(spelled))
    assert.equal(cortex.canonical(Number(value)), text);
  assert.equal(cortex.canonical(-0), '0');
  assert.equal(cortex.canonical(2n ** 70n), '1180591620717411303424');
});
