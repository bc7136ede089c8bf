// offline.test.mjs - the offline verifier from a file: it says what cortex-verify says of the recorded
// cases, by chooser, drop and keyboard, and reaches nothing.

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {ROOT} from './server.mjs';

const VECTORS = join(ROOT, 'tests/vectors/verify');
const MADE = join(ROOT, 'build/wasm');
const HOSTILE = '<img src=x onerror=window.pwned=1>\u202egnp.exe';

function begin() {
  const program = existsSync(MADE)
    ? readdirSync(MADE)
        .filter((name) => name.endsWith('.wasm'))
        .sort()
        .pop()
    : undefined;
  if (!program)
    return {skip: 'no cortex-verify for WebAssembly; scripts/offline-verifier.sh makes it'};
  const folder = mkdtempSync(join(tmpdir(), 'cortex-offline-'));
  const make = (name) => {
    const out = join(folder, name);
    execFileSync(process.execPath, [
      join(ROOT, 'web/offline.mjs'),
      ...['--program', join(MADE, program), '--version', '9.8.7', '--out', out],
    ]);
    return readFileSync(out);
  };
  const bytes = make('verifier.html');
  assert.ok(bytes.equals(make('again.html')), 'the same bytes each time');
  const {cases, files} = JSON.parse(readFileSync(join(VECTORS, 'cases.json'), 'utf8'));
  for (const [name, file] of Object.entries(files))
    writeFileSync(
      join(folder, name),
      file.at ? readFileSync(join(VECTORS, file.at)) : Buffer.from(file.base64, 'base64'),
    );
  const key = cases.find((one) => one.args.at(-1) === 'signed.cbor' && one.exit === 0).args[1];
  return {folder, cases, key, url: 'file://' + join(folder, 'verifier.html'), html: bytes};
}

/** The summary may be drawn before the last row is, and rows come one after the other. */
async function done(page, rows = 1) {
  await page
    .locator('.result')
    .nth(rows - 1)
    .waitFor();
  await page
    .getByRole('status')
    .filter({hasText: /holds|broken|indeterminate|without/, hasNotText: 'checking'})
    .waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.result .badge')].every(
      (badge) => !badge.textContent.startsWith('checking'),
    ),
  );
}

/** A key that was typed is a reason to check all files again, a pause later: until that is over. */
async function open(page, s, keys = []) {
  await page.goto(s.url);
  if (keys.length === 0) return;
  await page.getByLabel('Keys that you trust').fill(keys.join('\n'));
  await page.evaluate((ms) => new Promise((resolve) => setTimeout(resolve, ms)), 1000);
}

async function choose(page, s, ...names) {
  await page.getByLabel('Files to check').setInputFiles(names.map((name) => join(s.folder, name)));
  await done(page);
}

/** By file: verdict, reason, and what the program prints. */
const answers = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('.result')].map((row) => ({
      name: row.querySelector('h3').textContent,
      verdict: row.querySelector('.badge').textContent,
      reason: row.querySelector('.why > code')?.textContent ?? null,
      text: row.querySelector('pre')?.textContent ?? null,
      second: row.querySelector('.second')?.textContent ?? '',
    })),
  );

/** Cases of one file that differ by keys only, by their keys. */
function byKeys(cases) {
  const groups = new Map();
  for (const one of cases) {
    const keys = [];
    let rest = one.args;
    for (; rest[0] === '--key'; rest = rest.slice(2)) keys.push(rest[1]);
    if (rest.length !== 1 || rest[0].startsWith('--') || one.answers.length !== 1) continue;
    const id = keys.join('\n');
    groups.set(id, [...(groups.get(id) ?? []), {...one, file: rest[0]}]);
  }
  return [...groups].filter(([id]) => !id.includes('no key'));
}

export default {
  begin,
  end: (s) => s.folder && rmSync(s.folder, {recursive: true, force: true}),

  tests: {
    async 'it says of every recorded file what cortex-verify says'(page, s) {
      let tried = 0;
      for (const [keys, cases] of byKeys(s.cases)) {
        const asked = cases.filter((one) => existsSync(join(s.folder, one.file)));
        await open(page, s, keys.split('\n').filter(Boolean));
        await choose(page, s, ...asked.map((one) => one.file));
        await done(page, asked.length);
        const got = await answers(page);
        assert.equal(got.length, asked.length);
        for (const [i, one] of asked.entries()) {
          const {verdict, reason} = one.answers[0];
          assert.deepEqual(
            {name: got[i].name, verdict: got[i].verdict, reason: got[i].reason, text: got[i].text},
            {name: one.file, verdict, reason, text: one.text + one.error},
          );
          assert.doesNotMatch(got[i].second, /CONTRADICTS/);
          tried++;
        }
      }
      assert.ok(tried > 100, `${tried} cases`);
    },

    async 'options are asked for, and a change checks again'(page, s) {
      await open(page, s);
      await choose(page, s, 'multi.cbor', 'scope.late', 'scope.open');
      assert.deepEqual(
        (await answers(page)).map((one) => one.reason),
        ['NoManifest', 'ScopeExpired', 'NotAnchored'],
      );
      await page.getByText('Roots, journals and the manifest').click();
      await page
        .getByLabel('Manifest of a state proof')
        .setInputFiles(join(s.folder, 'manifest.cbor'));
      await page.locator('.is-holds, .result .badge', {hasText: 'holds'}).first().waitFor();
      await open(page, s);
      await choose(page, s, 'scope.late');
      await page.getByText('Time', {exact: true}).click();
      await page.getByLabel('Judge as of').fill('2019-01-01');
      await page.getByLabel('A file holds when').selectOption('self-consistent');
      await page.locator('.result .badge', {hasText: 'holds'}).waitFor();
      await page.getByLabel('Judge as of').fill('2019-01-32');
      await page.getByRole('alert').getByText('expected a time in UTC').waitFor();
      await page.getByLabel('Judge as of').fill('');
      await page.getByText('Roots, journals and the manifest').click();
      await page.getByLabel('Root of the journal').fill('abc');
      await page
        .getByRole('alert')
        .getByText("option --root: found 'abc', expected 64 hex digits")
        .waitFor();
      assert.equal((await answers(page))[0].verdict, 'no verdict');
    },

    async 'keys come from files, too'(page, s) {
      writeFileSync(join(s.folder, 'key.pub'), s.key + '\n');
      writeFileSync(join(s.folder, 'no-key.pub'), 'two words\n');
      await open(page, s);
      await choose(page, s, 'signed.cbor');
      assert.equal((await answers(page))[0].verdict, 'indeterminate');
      const chooser = page.getByLabel('or from files:').first();
      await chooser.setInputFiles(join(s.folder, 'no-key.pub'));
      await page.getByText('found no key in no-key.pub').waitFor();
      await chooser.setInputFiles(join(s.folder, 'key.pub'));
      await page.locator('.is-holds').waitFor();
      const text = await page.locator('.meaning').textContent();
      assert.equal(text, 'It holds, resting on a key given, which signed the manifest.');
    },

    async 'files are dropped, and names of files are only text'(page, s) {
      await open(page, s, [s.key]);
      const bytes = [...readFileSync(join(s.folder, 'answer.proof'))];
      await page.evaluate(
        ([name, data]) => {
          const drop = new DataTransfer();
          drop.items.add(new File([new Uint8Array(data)], name));
          drop.items.add(
            new File([new Uint8Array(data.map((byte, i) => byte ^ (i === 700 ? 1 : 0)))], '--help'),
          );
          for (const kind of ['dragover', 'drop'])
            document.dispatchEvent(
              new DragEvent(kind, {dataTransfer: drop, bubbles: true, cancelable: true}),
            );
        },
        [HOSTILE, bytes],
      );
      await done(page, 2);
      const [named, other] = await answers(page);
      assert.equal(named.verdict, 'holds');
      assert.ok(named.name.includes('<img src=x') && named.name.includes('RLO'), named.name);
      assert.deepEqual([other.name, other.verdict], ['--help', 'broken']);
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    },

    async 'all of it works by keyboard'(page, s) {
      await open(page, s);
      const asked = page.waitForEvent('filechooser');
      await page.getByRole('button', {name: 'Choose files'}).waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      const chooser = await asked;
      await chooser.setFiles([join(s.folder, 'checkpoint')]);
      await done(page);
      const reached = new Set();
      for (let i = 0; i < 25; i++) {
        await page.keyboard.press('Tab');
        reached.add(
          await page.evaluate(
            () =>
              document.activeElement.getAttribute('aria-label') ??
              document.activeElement.textContent.slice(0, 30),
          ),
        );
      }
      for (const wanted of ['Remove all', 'Remove checkpoint', 'What cortex-verify prints', 'Time'])
        assert.ok(reached.has(wanted), `${wanted}: ${[...reached].join(', ')}`);
    },

    async 'what is too large or too many is said'(page, s) {
      writeFileSync(join(s.folder, 'large'), Buffer.alloc((64 << 20) + 1, 0xa0));
      await open(page, s);
      await choose(page, s, 'large');
      const [large] = await answers(page);
      assert.equal(large.verdict, 'indeterminate');
      assert.match(
        await page.locator('.result .why').textContent(),
        /longer than the limit of 67108864 bytes/,
      );
      await page.getByRole('button', {name: 'Remove all'}).click();
      await page.getByLabel('Files to check').setInputFiles(
        Array.from({length: 203}, (_, i) => ({
          name: `note ${i}`,
          mimeType: 'text/plain',
          buffer: Buffer.from('nothing'),
        })),
      );
      await page
        .getByRole('alert')
        .getByText('At most 200 files at once: 3 files left out')
        .waitFor();
      await done(page);
      assert.equal((await answers(page)).length, 200);
    },

    async 'a check that takes long is stopped'(page, s) {
      await open(page, s);
      const many = Array.from({length: 60}, (_, i) => ({
        name: `pack ${i}`,
        mimeType: 'application/cbor',
        buffer: readFileSync(join(s.folder, 'commit.cxe')),
      }));
      await page.getByLabel('Files to check').setInputFiles(many);
      await page.getByRole('button', {name: 'Stop'}).click();
      await done(page);
      await page.getByText('stopped by you').last().waitFor();
      assert.ok(await page.getByRole('button', {name: 'Remove all'}).isVisible());
    },

    'it asks for nothing, and could not': {
      async run(page, s, {complaints}) {
        const heard = [];
        const server = createServer((request, response) => {
          heard.push(request.url);
          response.setHeader('Access-Control-Allow-Origin', '*').end('reached');
        });
        await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
        const at = `http://127.0.0.1:${server.address().port}`;
        const requests = [];
        page.on('request', (request) => requests.push(request.url()));
        await open(page, s, [s.key]);
        await choose(page, s, 'answer.proof', 'memory.cxe');
        assert.deepEqual(
          requests.filter((url) => !url.startsWith('blob:')),
          [s.url],
        );
        // What its own script could try, were it another.
        const tried = await page.evaluate(async (url) => {
          const ended = (element) =>
            new Promise((resolve) => {
              element.onload = () => resolve('loaded');
              element.onerror = () => resolve('refused');
              document.body.append(element);
            });
          const image = new Image();
          image.src = url + '/image';
          const script = Object.assign(document.createElement('script'), {src: url + '/script'});
          const style = Object.assign(document.createElement('link'), {
            rel: 'stylesheet',
            href: url + '/style',
          });
          const said = [await ended(image), await ended(script), await ended(style)];
          said.push(
            await fetch(url + '/fetch').then(
              () => 'loaded',
              () => 'refused',
            ),
          );
          said.push(navigator.sendBeacon(url + '/beacon', 'x') ? 'queued' : 'refused');
          try {
            const socket = new WebSocket(url.replace('http', 'ws') + '/socket');
            said.push(
              await new Promise((resolve) => {
                socket.onopen = () => resolve('loaded');
                socket.onerror = () => resolve('refused');
              }),
            );
          } catch {
            said.push('refused');
          }
          const frame = Object.assign(document.createElement('iframe'), {src: url + '/frame'});
          document.body.append(frame);
          const evil = document.createElement('script');
          evil.textContent = 'globalThis.pwned = 1';
          document.body.append(evil);
          return [...said, String(globalThis.pwned)];
        }, at);
        await page.getByText('Offline verifier').first().waitFor();
        server.close();
        assert.deepEqual(heard, []);
        assert.ok(!tried.includes('loaded') && tried.at(-1) === 'undefined', tried.join());
        assert.ok(
          complaints.some((line) => line.includes('Content Security Policy')),
          complaints.join(),
        );
        complaints.length = 0;
      },
    },

    async 'nothing serious is found by axe'(page, s) {
      await open(page, s, [s.key]);
      await choose(page, s, 'answer.proof', 'scope.late', 'memory.cxe');
      for (const fold of await page.locator('summary').all()) await fold.click();
      await nothingSerious(page);
    },

    'nothing serious is found by axe, dark and narrow': {
      options: {colorScheme: 'dark', viewport: {width: 390, height: 800}},
      async run(page, s) {
        await open(page, s, [s.key]);
        await choose(page, s, 'answer.proof', 'scope.late', 'memory.cxe');
        await nothingSerious(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.equal(wide, false);
      },
    },

    async 'it says which program it carries, and stays small'(page, s) {
      assert.ok(s.html.length < 3 << 20);
      const text = s.html.toString('latin1');
      assert.match(text, /default-src 'none'; connect-src 'none'; [^"]*form-action 'none'/);
      await open(page, s);
      await page.getByText('cortex-verify 9.8.7').waitFor();
    },
  },
};
