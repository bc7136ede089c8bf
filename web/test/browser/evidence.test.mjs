// evidence.test.mjs - proofs recomputed in the page: they hold with the user's trust anchors, and a
// flipped bit is detected.

import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {cortex, ROOT, serveHome} from './server.mjs';

const ACTOR = 'ada';
const HOSTILE =
  '<script>window.pwned=1</script>"><img src=x onerror=window.pwned=1>\u202egnp.exe\u202c';

function must(args) {
  const done = cortex(args);
  assert.equal(done.status, 0, `${args.join(' ')}: ${done.stderr}`);
  return done.stdout;
}

/** A home with memories, a sealed snapshot, a signed checkpoint and entries after it. */
async function begin() {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-evidence-'));
  const key = join(folder, 'ada.key'),
    proof = join(folder, 'answer.proof');
  const of = (home) => ['--home', home, '--actor', ACTOR];
  const write = (home, n) =>
    must([
      'memory',
      'write',
      'Belief',
      JSON.stringify({subject: 'build', statement: `belief ${n}`, stance: 'believe'}),
      ...of(home),
    ]).trim();
  const made = {folder, uris: []};
  const server = await serveHome((home) => {
    made.key = must(['key', 'new', '--name', 'log.example/ada', key, '--home', home]).trim();
    for (let n = 0; n < 4; n++) made.uris.push(write(home, n));
    must(['snapshot', 'make', ...of(home)]);
    must(['snapshot', 'seal', '0', '--sign', key, ...of(home)]);
    must(['checkpoint', '--sign', key, ...of(home)]);
    for (let n = 4; n < 7; n++) made.uris.push(write(home, n));
    must(['snapshot', 'make', ...of(home)]);
    made.hostile = must([
      'memory',
      'write',
      'Belief',
      JSON.stringify({subject: 'x', statement: HOSTILE, stance: 'believe'}),
      '--home',
      home,
      '--actor',
      'eve',
    ]).trim();
    must(['prove', '--at', '0', '-o', proof, made.uris[1], ...of(home)]);
  });
  return {...server, ...made, proof, bytes: readFileSync(proof)};
}

const verdict = (page, word) => page.locator('.report-head .badge', {hasText: word}).waitFor();

const VECTORS = join(ROOT, 'tests/vectors/evidence');

/** The key of the vectors, as people hand keys on. */
function vectorKey() {
  const key = Buffer.from(readFileSync(join(VECTORS, 'key.txt'), 'utf8').trim(), 'hex');
  const id = createHash('sha256')
    .update('vectors')
    .update(Buffer.of(10, 1))
    .update(key)
    .digest('hex')
    .slice(0, 8);
  return `vectors+${id}+${Buffer.concat([Buffer.of(1), key]).toString('base64')}`;
}

/** All that the screen asks of the server has come. */
async function settled(page) {
  await page.getByText('The file stays in your browser').waitFor();
  await page.locator('.checkpoint').first().waitFor();
  await page.locator('.snapshot', {hasText: 'memories'}).first().waitFor();
}

const choose = (page, file) =>
  page.getByLabel('A proof, manifest, checkpoint or evidence file').setInputFiles(file);

async function drop(page, name, latin1) {
  const transfer = await page.evaluateHandle(
    ([called, text]) => {
      const held = new DataTransfer();
      held.items.add(new File([Uint8Array.from(text, (c) => c.charCodeAt(0))], called));
      return held;
    },
    [name, latin1],
  );
  await page.dispatchEvent('.own', 'drop', {dataTransfer: transfer});
}

async function trust(page, line) {
  await page.getByLabel('Trusted key or root, obtained out of band').fill(line);
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
      await page.getByRole('button', {name: 'Simulate tampering'}).click();
      await verdict(page, 'broken');
      await page.getByRole('button', {name: 'Restore'}).click();
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
      await page.getByRole('tab', {name: 'Consistency'}).click();
      await page.locator('.report-head', {hasText: 'Consistency of a journal'}).waitFor();
      await page.locator('.proof-mark', {hasText: 'equal'}).waitFor();
      await page.goBack();
      await page.locator('.report-head', {hasText: 'Entry of a journal'}).waitFor();
    },

    async 'a file of somebody else is checked and sent nowhere'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=file`));
      await settled(page);
      const asked = [];
      page.on('request', (request) => asked.push(request.url()));
      await trust(page, s.key);
      await page
        .getByLabel('A proof, manifest, checkpoint or evidence file')
        .setInputFiles(s.proof);
      await verdict(page, 'holds');
      await page.locator('.questions', {hasText: s.uris[1]}).waitFor();
      const forged = join(s.folder, 'forged.proof');
      const bytes = Buffer.from(s.bytes);
      bytes[Math.floor(bytes.length / 3)] ^= 4;
      writeFileSync(forged, bytes);
      await page.getByLabel('A proof, manifest, checkpoint or evidence file').setInputFiles(forged);
      await verdict(page, 'broken');
      writeFileSync(forged, '<script>alert(1)</script>');
      await page.getByLabel('A proof, manifest, checkpoint or evidence file').setInputFiles(forged);
      await verdict(page, 'broken');
      assert.deepEqual(asked, []);
    },

    async 'proof and checkpoint are saved, and hold for cortex-verify'(page, s) {
      await page.goto(
        s.url(`/evidence?actor=${ACTOR}&what=state&at=0&uri=${encodeURIComponent(s.uris[1])}`),
      );
      await verdict(page, 'indeterminate');
      const [proof] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', {name: 'state.proof'}).click(),
      ]);
      await proof.saveAs(join(s.folder, 'saved.proof'));
      assert.equal(cortex(['verify', join(s.folder, 'saved.proof'), '--key', s.key]).status, 0);
      const [note] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', {name: 'Save the checkpoint of log.example/ada'}).click(),
      ]);
      assert.equal(note.suggestedFilename(), 'log.example-ada.checkpoint');
      await note.saveAs(join(s.folder, 'saved.checkpoint'));
      const done = cortex(['verify', join(s.folder, 'saved.checkpoint'), '--key', s.key]);
      assert.equal(done.status, 0, done.stdout + done.stderr);
      // The page reads what it gave out.
      await page.getByRole('tab', {name: 'Your file'}).click();
      await trust(page, s.key);
      await page
        .getByLabel('A proof, manifest, checkpoint or evidence file')
        .setInputFiles(join(s.folder, 'saved.checkpoint'));
      await verdict(page, 'holds');
    },

    async 'snapshots stand in the order of time, each with its root to prove against'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=state`));
      const shown = page.locator('.snapshot', {hasText: 'memories'});
      await shown.first().waitFor();
      assert.deepEqual(await shown.locator('.mono').allTextContents(), ['#1', '#0']);
      await shown.nth(1).filter({hasText: 'sealed'}).click();
      await page.waitForFunction(() => location.hash.includes('at=0'));
      // What was written later is not there then.
      await page.getByLabel('URI').fill(s.uris[5]);
      await page.getByLabel('that the memory is absent').check();
      await page.getByRole('button', {name: 'Prove', exact: true}).click();
      await page.locator('.questions', {hasText: 'is not recorded'}).waitFor();
    },

    async 'an evidence file is opened, and every part of it recomputed'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=file`));
      await settled(page);
      const asked = [];
      page.on('request', (request) => asked.push(request.url()));
      await choose(page, join(VECTORS, 'commit.cxe'));
      await verdict(page, 'data indeterminate');
      await page.locator('.report-why', {hasText: 'NotAnchored'}).waitFor();
      await trust(page, vectorKey());
      await verdict(page, 'data holds');
      await page.locator('.report-head .badge', {hasText: 'page not checked here'}).waitFor();
      for (const part of ['journal', 'entry', 'run', 'commit', 'trace', 'memory'])
        await page.locator(`.part-${part} .badge`, {hasText: 'holds'}).waitFor();
      await page.getByText('cortex-verify rebuilds that page').waitFor();
      await page.locator('.fold-open', {hasText: 'patch.diff'}).first().click();
      await page.locator('.shown', {hasText: '@@'}).waitFor();
      await nothingSerious(page);
      await page.getByRole('button', {name: 'Simulate tampering'}).click();
      await verdict(page, 'data broken');
      await page.getByText('Anything: the check failed.').waitFor();
      await page.getByRole('button', {name: 'Restore'}).click();
      await verdict(page, 'data holds');
      assert.deepEqual(asked, []);
    },

    async 'forged evidence files, dropped on the page, are refused'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=file`));
      await page.getByText('The file stays in your browser').waitFor();
      await trust(page, vectorKey());
      const whole = readFileSync(join(VECTORS, 'trace.cxe'), 'latin1');
      await drop(page, 'trace.cxe', whole);
      await verdict(page, 'data holds');
      // Its end is cut; its block is another one; it is of another version.
      await drop(page, 'cut.cxe', whole.slice(0, -2));
      await verdict(page, 'broken');
      await page.locator('.report-why', {hasText: 'BadEvidence'}).waitFor();
      const begins = whole.indexOf('id="evidence">') + 15;
      await drop(page, 'spelled.cxe', whole.slice(0, begins) + '\n' + whole.slice(begins));
      await page.locator('.report-why', {hasText: 'PageMismatch'}).waitFor();
      const at = begins + 3000;
      await drop(
        page,
        'forged.cxe',
        whole.slice(0, at) + (whole[at] === 'A' ? 'B' : 'A') + whole.slice(at + 1),
      );
      await page.locator('.report-head .badge', {hasText: 'broken'}).waitFor();
      // A page that says something else is what this page cannot see, and says so; cortex-verify sees it.
      const lied = whole.replace('</h1>', ' and all is well</h1>');
      assert.notEqual(lied, whole);
      await drop(page, 'lied.cxe', lied);
      await verdict(page, 'data holds');
      await page.locator('.report-head .badge', {hasText: 'page not checked here'}).waitFor();
      writeFileSync(join(s.folder, 'lied.cxe'), lied, 'latin1');
      assert.match(cortex(['verify', join(s.folder, 'lied.cxe')]).stdout, /PageMismatch/);
    },

    async 'an evidence file is a page by itself, without a server or a script'(page, s) {
      const made = join(s.folder, 'made.html');
      must(['evidence', s.uris[0], '--html', '-o', made, '--home', s.home]);
      for (const file of [made, join(VECTORS, 'commit.cxe')]) {
        const html = join(s.folder, 'shown.html');
        writeFileSync(html, readFileSync(file));
        const asked = [];
        page.on('request', (request) => asked.push(request.url()));
        await page.goto('file://' + html);
        await page.locator('h1').first().waitFor();
        await page.getByText('cortex-verify').first().waitFor();
        await nothingSerious(page);
        assert.deepEqual([...new Set(asked)], ['file://' + html]);
        assert.equal(
          await page.evaluate(
            () => document.querySelectorAll('script:not([type]), script[src], link, img').length,
          ),
          0,
        );
      }
    },

    async 'hostile text in an evidence file is text'(page, s) {
      const file = join(s.folder, 'hostile.cxe');
      must(['evidence', s.hostile, '-o', file, '--home', s.home]);
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=file`));
      await settled(page);
      await choose(page, file);
      await verdict(page, 'data indeterminate');
      for (const fold of await page.locator('.fold-open').all()) await fold.click();
      await page.locator('.shown', {hasText: '<script>window.pwned=1</script>'}).first().waitFor();
      await page.locator('.shown .sign', {hasText: 'RLO'}).first().waitFor();
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      assert.equal(await page.locator('main script, main img').count(), 0);
    },

    async 'a file for somebody else is saved, and holds for cortex-verify'(page, s) {
      await page.goto(s.url('/evidence?what=auditor'));
      await page.getByLabel('Run, trace, commit, memory or session').fill('nothing like that');
      await page.getByRole('button', {name: 'Create evidence file'}).click();
      await page.getByRole('alert').waitFor();
      await page.getByLabel('Run, trace, commit, memory or session').fill(s.uris[0]);
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', {name: 'Create evidence file'}).click(),
      ]);
      assert.equal(saved.suggestedFilename(), 'evidence.cxe');
      await saved.saveAs(join(s.folder, 'saved.cxe'));
      const done = cortex(['verify', '--self-consistent', join(s.folder, 'saved.cxe')]);
      assert.equal(done.status, 0, done.stdout + done.stderr);
    },

    async 'an address that signs in is taken by a page that is open'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=entry&seq=1`));
      await page.locator('.entry-facts').waitFor();
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=growth`));
      await page.locator('.report-head', {hasText: 'Consistency of a journal'}).waitFor();
      assert.ok(!page.url().includes('token'), page.url());
    },

    async 'nothing serious for axe in the evidence'(page, s) {
      await page.goto(s.url(`/evidence?actor=${ACTOR}&what=entry&seq=1`));
      await verdict(page, 'indeterminate');
      await nothingSerious(page);
    },
  },
};
