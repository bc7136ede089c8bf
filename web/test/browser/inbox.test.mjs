// inbox.test.mjs - everything recorded in one list: facets, search, what is new.

import assert from 'node:assert/strict';
import {join} from 'node:path';
import {readFileSync} from 'node:fs';
import {goldenId, putBundle, serveRuns} from './runs.mjs';
import {cortex, ROOT, serveHome} from './server.mjs';

const TRACES = join(ROOT, 'examples/traces');
const BETA = '0f1710aec6e6a530';
const FACT = {
  subject: 's',
  predicate: 'p',
  object: 'o',
  source: 'x',
  as_of: '2026-01-01T00:00:00Z',
};

const head = (page, text) => page.locator('.screen-head', {hasText: text}).waitFor();
const choose = (page, name) => page.locator('.facets').getByRole('button', {name}).click();

export default {
  begin: () =>
    serveRuns(
      (runs) => {
        putBundle(runs, 'out_of_scope');
        putBundle(runs, 'fix_loop');
      },
      (home) => {
        cortex(['key', 'add', '--home', home, join(TRACES, 'trust.json')]);
        cortex(['record', '--home', home, join(TRACES, 'alpha.json'), join(TRACES, 'beta.json')]);
        const fact = {...FACT, statement: 'the parrot <b>sleeps</b> at noon'};
        cortex(['memory', 'write', 'Fact', JSON.stringify(fact), '--actor', 'ann', '--home', home]);
      },
    ),
  end: (s) => s.close(),

  tests: {
    async 'facets and search narrow the list, and stand in the address'(page, s) {
      await page.goto(s.url('/inbox'));
      await page.locator('.item-trace').first().waitFor();
      await head(page, '20 records');
      await choose(page, /^histories 2$/);
      await head(page, '2 records found');
      assert.match(page.url(), /kind=history/);
      await page.goBack();
      await head(page, '20 records');
      await choose(page, /^not verified|^runs 2$/);
      await head(page, '2 records found');
      await page.locator('.item-run').first().waitFor();
      assert.equal(await page.locator('.item').count(), 2);
      await page.getByRole('button', {name: 'Clear the filter'}).first().click();
      await page.getByLabel('Search everything').fill('task_7 0f1710ae');
      await head(page, '1 record found');
      await page.reload();
      await head(page, '1 record found');
      await page
        .locator('.item-trace', {hasText: `trace-${BETA.slice(0, 10)}\u2026-000007`})
        .waitFor();
      await page.getByLabel('Search everything').fill('nothing like this');
      await page.getByText('No matching records').waitFor();
    },

    async 'words are looked for in what was said, too'(page, s) {
      await page.goto(s.url('/inbox?q=page said'));
      await head(page, 'record');
      const found = await (
        await fetch(`${s.base}/api/v1/covenant/traces?text=page+said&level=full_traces`, {
          headers: {Authorization: `Bearer ${s.token}`},
        })
      ).json();
      assert.ok(found.count > 0 && found.count < 16);
      await page.waitForFunction(
        (n) => document.querySelectorAll('.item-trace').length === n,
        found.count,
      );
    },

    async 'a memory with the words opens in place, and the words are marked'(page, s) {
      await page.goto(s.url('/inbox?q=parrot'));
      const hit = page.locator('details.hit');
      await hit.waitFor();
      assert.equal(await hit.locator('summary mark').textContent(), 'parrot');
      assert.match(await hit.locator('summary .hit-text').textContent(), /<b>sleeps<\/b>/);
      await hit.locator('summary').click();
      await hit.locator('.hit-memory mark').first().waitFor();
      assert.match(await hit.locator('.hit-memory').textContent(), /"as_of": "2026-01-01/);
      assert.match(page.url(), /inbox\?q=parrot/);
    },

    async 'a step of a trace with the words opens there'(page, s) {
      await page.goto(s.url('/inbox?q=page said'));
      const hit = page.locator('a.hit').first();
      await hit.waitFor();
      const node = new URLSearchParams((await hit.getAttribute('href')).split('?')[1]).get('node');
      const [, entry, step] = /^entry:(\d+)\.(\d+)$/.exec(node);
      await hit.click();
      const event = page.getByRole('region', {name: 'Event'});
      await event.getByText(`{actor: "${BETA.slice(0, 10)}\u2026", seq: ${entry}}`).waitFor();
      assert.match(await event.textContent(), new RegExp(`component_index\\s*${step}\\D`));
      await page.locator('.talk-step mark', {hasText: 'said'}).first().waitFor();
    },

    async 'a run of the list opens, and one that failed tells its gate'(page, s) {
      await page.goto(s.url('/inbox?kind=run&verdict=failed'));
      await page.locator('.item-run').first().click();
      await page.waitForFunction(
        (id) => location.hash.startsWith(`#/run/${id}`),
        goldenId('out_of_scope'),
      );
    },

    async 'a history opens in the debugger'(page, s) {
      await page.goto(s.url('/inbox?kind=history'));
      const list = page.getByRole('listbox', {name: 'Records'});
      await list.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.locator('.event-agent', {hasText: 'agent '}).waitFor();
      await page.locator('.screen-head', {hasText: 'valid'}).waitFor();
      await page.goBack();
      await list.waitFor();
    },

    async 'an address that asks for nonsense is told what is wrong'(page, s, open) {
      await page.goto(s.url('/inbox?time=sometime'));
      await page.getByText('an invalid parameter').waitFor();
      const others = open.complaints.filter((one) => !one.includes('status of 422'));
      open.complaints.splice(0, open.complaints.length, ...others);
    },

    async 'what is recorded now appears by itself, findings too'(page, s) {
      await page.goto(s.url('/inbox'));
      await page.getByText('live', {exact: true}).waitFor();
      // A list that comes later has the new ones already, and nothing in it is new.
      await head(page, '20 records');
      await page.locator('.item').first().waitFor();
      const answer = await fetch(s.base + '/api/v1/covenant/events', {
        method: 'POST',
        headers: {Authorization: `Bearer ${s.token}`, 'Content-Type': 'application/json'},
        body: readFileSync(join(TRACES, 'later.json')),
      });
      assert.equal(answer.status, 200);
      await head(page, '2 new');
      await page.locator('.item', {hasText: 'new'}).first().waitFor();
      await head(page, '22 records');
      assert.equal(cortex(['detect', '--home', s.home]).status, 1);
      await page.locator('.item-alert', {hasText: 'Broken audit chain'}).first().waitFor();
      await page.locator('.item-alert', {hasText: 'new'}).first().waitFor();
      await page.locator('.item-alert').first().click();
      await page.locator('.fleet-alert').first().waitFor();
    },

    async 'an index that cannot be reached is said with what to do'(page, _s, open) {
      const away = await serveHome(() => {}, '--otlp', 'off', '--db', 'postgresql://127.0.0.1:1/x');
      try {
        await page.goto(away.url('/inbox'));
        const failed = page.locator('.state-failed');
        await failed.getByText('The index cannot be reached', {exact: true}).waitFor();
        await failed.getByText('start PostgreSQL, or correct --db').waitFor();
        // The browser itself notes each 503, of which there are more while the page tries again.
        await page.goto('about:blank');
        const noted = open.complaints.splice(0);
        assert.ok(
          noted.every((one) => one.includes('status of 503')),
          noted.join('\n'),
        );
      } finally {
        await away.close();
      }
    },
  },
};
