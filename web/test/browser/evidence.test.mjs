// evidence.test.mjs - proofs recomputed in the page: they hold by what a person trusts, and a bit that is
// turned over is seen.

import assert from 'node:assert/strict';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {cortex, serveHome} from './server.mjs';

const ACTOR = 'ada';

function must(args) {
  const done = cortex(args);
  assert.equal(done.status, 0, `${args.join(' ')}: ${done.stderr}`);
  return done.stdout;
}

/** A home with memories, a sealed snapshot, a signed checkpoint and entries after it. */
async function begin() {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-evidence-'));
  const key = join(folder, 'ada.key'), proof = join(folder, 'answer.proof');
  const of = (home) => ['--home', home, '--actor', ACTOR];
  const write = (home, n) => must(['memory', 'write', 'Belief',
    JSON.stringify({subject: 'build', statement: `belief ${n}`, stance: 'believe'}), ...of(home)]).trim();
  const made = {folder, uris: []};
  const server = await serveHome((home) => {
    made.key = must(['key', 'new', '--name', 'log.example/ada', key, '--home', home]).trim();
    for (let n = 0; n < 4; n++) made.uris.push(write(home, n));
    must(['snapshot', 'make', ...of(home)]);
    must(['snapshot', 'seal', '0', '--sign', key, ...of(home)]);
    must(['checkpoint', '--sign', key, ...of(home)]);
    for (let n = 4; n < 7; n++) write(home, n);
    must(['prove', '--at', '0', '-o', proof, made.uris[1], ...of(home)]);
  });
  return {...server, ...made, proof, bytes: readFileSync(proof)};
}

const verdict = (page, word) => page.locator('.report-head .badge', {hasText: word}).waitFor();

async function trust(page, line) {
  await page.getByLabel('A key or root that came to you another way').fill(line);
  await page.getByRole('button', {name: 'Trust', exact: true}).click();
}

export default {
  begin,
  end: async (s) => {
    await s.close();
    rmSync(s.folder, {recursive: true, force: true});
  },

  tests: {
    async 'a memory is proven by a key that is trusted, and a bit turned over is seen'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=state&at=0`));
      await page.locator('.memory').first().waitFor();
      await page.getByLabel('URI').fill(s.uris[2]);
      await page.getByRole('button', {name: 'Prove', exact: true}).click();
      await verdict(page, 'indeterminate');
      await trust(page, 'no key at all');
      await page.getByRole('alert').filter({hasText: 'Expected a verifier key'}).waitFor();
      await trust(page, s.key);
      await verdict(page, 'holds');
      await page.locator('.proof-rung').first().waitFor();
      await page.getByRole('button', {name: 'Turn a bit over'}).click();
      await verdict(page, 'broken');
      await page.getByRole('button', {name: 'Turn it back'}).click();
      await verdict(page, 'holds');
      await page.reload();
      await verdict(page, 'holds');
    },

    async 'an entry and the growth of the journal lead to a root'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=entry&seq=1`));
      await verdict(page, 'indeterminate');
      await page.locator('.proof-mark', {hasText: 'equal'}).waitFor();
      await page.locator('.entry-facts', {hasText: 'write'}).waitFor();
      await trust(page, s.key);
      await page.getByRole('button', {name: /log.example\/ada 5 entries/}).click();
      await verdict(page, 'holds');
      assert.match(page.url(), /checkpoint=log.example/);
      await page.getByRole('tab', {name: 'Growth'}).click();
      await page.locator('.report-head', {hasText: 'Growth of a journal'}).waitFor();
      await page.locator('.proof-mark', {hasText: 'equal'}).waitFor();
      await page.goBack();
      await page.locator('.report-head', {hasText: 'Entry of a journal'}).waitFor();
    },

    async 'a file of somebody else is checked and sent nowhere'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=file`));
      await page.getByText('Checked here, sent nowhere').waitFor();
      const asked = [];
      page.on('request', (request) => asked.push(request.url()));
      await trust(page, s.key);
      await page.getByLabel('A proof, manifest or checkpoint').setInputFiles(s.proof);
      await verdict(page, 'holds');
      await page.locator('.questions', {hasText: s.uris[1]}).waitFor();
      const forged = join(s.folder, 'forged.proof');
      const bytes = Buffer.from(s.bytes);
      bytes[Math.floor(bytes.length / 3)] ^= 4;
      writeFileSync(forged, bytes);
      await page.getByLabel('A proof, manifest or checkpoint').setInputFiles(forged);
      await verdict(page, 'broken');
      writeFileSync(forged, '<script>alert(1)</script>');
      await page.getByLabel('A proof, manifest or checkpoint').setInputFiles(forged);
      await verdict(page, 'broken');
      assert.deepEqual(asked, []);
    },

    async 'a file for somebody else is saved, and holds for cortex-verify'(page, s) {
      await page.goto(s.url('/evidence?what=auditor'));
      await page.getByLabel('Run, trace, commit or memory').fill('nothing like that');
      await page.getByRole('button', {name: 'Make the file'}).click();
      await page.getByRole('alert').waitFor();
      await page.getByLabel('Run, trace, commit or memory').fill(s.uris[0]);
      const [saved] = await Promise.all([
        page.waitForEvent('download'), page.getByRole('button', {name: 'Make the file'}).click(),
      ]);
      assert.equal(saved.suggestedFilename(), 'evidence.cxe');
      await saved.saveAs(join(s.folder, 'saved.cxe'));
      const done = cortex(['verify', join(s.folder, 'saved.cxe')]);
      assert.equal(done.status, 0, done.stdout + done.stderr);
    },

    async 'nothing serious for axe in the evidence'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=entry&seq=1`));
      await verdict(page, 'indeterminate');
      await nothingSerious(page);
    },
  },
};
