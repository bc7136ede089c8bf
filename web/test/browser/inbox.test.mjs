// inbox.test.mjs - everything recorded in one list: facets, search, what is new.

import assert from 'node:assert/strict';
import {join} from 'node:path';
import {readFileSync} from 'node:fs';
import {nothingSerious} from './axe.mjs';
import {cortex, ROOT, serveHome} from './server.mjs';

const TRACES = join(ROOT, 'examples/traces');

export default {
  begin: () => serveHome((home) => {
    cortex(['key', 'add', '--home', home, join(TRACES, 'trust.json')]);
    cortex(['record', '--home', home, join(TRACES, 'alpha.json'), join(TRACES, 'beta.json')]);
  }),
  end: (s) => s.close(),

  tests: {
    async 'facets and search narrow the list, and stand in the address'(page, s) {
      await page.goto(s.url('/inbox'));
      await page.locator('.item-trace').first().waitFor();
      await page.locator('.screen-head', {hasText: '18 records'}).waitFor();
      await page.getByRole('button', {name: /^history/}).click();
      await page.locator('.screen-head', {hasText: '2 of 18 records'}).waitFor();
      assert.match(page.url(), /kind=history/);
      await page.getByRole('button', {name: 'Clear the filter'}).click();
      await page.getByLabel('Search all fields').fill('task_7 976dbe');
      await page.locator('.screen-head', {hasText: '1 of 18 records'}).waitFor();
      await page.reload();
      await page.locator('.screen-head', {hasText: '1 of 18 records'}).waitFor();
      await page.getByLabel('Search all fields').fill('nothing like this');
      await page.getByText('Nothing matches').waitFor();
    },

    async 'a history opens in the debugger'(page, s) {
      await page.goto(s.url('/inbox?kind=history'));
      const list = page.getByRole('listbox', {name: 'Records'});
      await list.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.locator('.event-agent', {hasText: 'agent/'}).waitFor();
      await page.locator('.screen-head', {hasText: 'holds'}).waitFor();
      await page.goBack();
      await list.waitFor();
    },

    async 'nothing serious for axe'(page, s) {
      await page.goto(s.url('/inbox'));
      await page.locator('.item-trace').first().waitFor();
      await nothingSerious(page);
    },

    async 'what is recorded now appears by itself'(page, s) {
      await page.goto(s.url('/inbox'));
      await page.getByText('live', {exact: true}).waitFor();
      const answer = await fetch(s.base + '/api/v1/covenant/events', {
        method: 'POST', headers: {'Authorization': `Bearer ${s.token}`, 'Content-Type': 'application/json'},
        body: readFileSync(join(TRACES, 'later.json')),
      });
      assert.equal(answer.status, 200);
      await page.locator('.screen-head', {hasText: '2 new'}).waitFor();
      await page.locator('.item', {hasText: 'new'}).first().waitFor();
    },
  },
};
