// nodes.test.mjs - a fleet of three nodes is watched through one that waits, while the owner is killed, another
// one drains, and answers are old or do not come.

import assert from 'node:assert/strict';
import {nothingSerious} from './axe.mjs';
import {serveFleet} from './fleet_nodes.mjs';
import {serveHome} from './server.mjs';

const row = (page, table, name) =>
  page.getByRole('region', {name: table}).getByRole('row', {name: new RegExp(`^${name} `)});
const shows = (page, table, name, text) => row(page, table, name).filter({hasText: text}).waitFor();
const event = (page, text) =>
  page.getByRole('region', {name: 'Events'}).getByRole('row').filter({hasText: text}).waitFor();

/** The next answers are what `change` makes of the server's. */
async function altered(page, change) {
  await page.route('**/api/v1/nodes', async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    change(json);
    await route.fulfill({response: answer, json});
  });
}

export default {
  begin: () => serveFleet('n1', 'n2', 'n3'),
  end: (s) => s.close(),

  tests: {
    async 'the page goes on when the node that serves it is killed, and another one drains'(
      page,
      s,
      open,
    ) {
      await page.goto(s.nodes.n2.url('/nodes'));
      await shows(page, 'Parts', 'main', /served.*n1/);
      await shows(page, 'Nodes', 'n1', /serving.*here/);
      await shows(page, 'Nodes', 'n2', 'waiting');
      await event(page, 'n1 took main, which was free');
      await shows(page, 'Derived tables', 'main', 'current');
      const commits = Number(
        await row(page, 'Parts', 'main').getByRole('cell').nth(5).textContent(),
      );
      // What is renewed stays where it is: the elements are the same ones.
      await page.evaluate(() => {
        document.querySelector('table').isTheSame = true;
      });
      await s.write(s.nodes.n3.base, 1);
      await page.waitForFunction(
        (before) => Number(document.querySelectorAll('td')[5].textContent) > before,
        commits,
      );
      await s.nodes.n1.kill();
      s.cortex('fleet', 'drain', 'n3');
      await event(page, /n[23] took main after the lease of its owner ran out/);
      await shows(page, 'Nodes', 'n1', 'silent');
      await shows(page, 'Nodes', 'n3', 'draining');
      await shows(page, 'Parts', 'main', /served.*n2/);
      // Whoever hears the page is told; no one had to sign in again.
      const said = await page.getByRole('status').first().textContent();
      assert.match(said, /n[23] took main/);
      assert.ok(await page.evaluate(() => document.querySelector('table').isTheSame));
      await nothingSerious(page);
      await page.emulateMedia({colorScheme: 'dark', reducedMotion: 'reduce'});
      await nothingSerious(page, {runOnly: ['color-contrast']});
      await page.setViewportSize({width: 390, height: 800});
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        'tables scroll, the page does not',
      );
      // The question that was under way had no answer.
      const allowed = /net::ERR_(EMPTY_RESPONSE|CONNECTION_RESET)/;
      open.complaints = open.complaints.filter((one) => !allowed.test(one));
    },

    async 'what is old, or has no answer, is said to be'(page, s) {
      // A stopped part leads to what an operator does; a text of others is shown as it is.
      await altered(page, (fleet) => {
        fleet.away = true;
        fleet.age_ms = 42000;
        fleet.parts[0].stopped = true;
        const detail = 'its head <b>changed</b>';
        fleet.events.unshift({...fleet.events[0], kind: 'stopped', detail});
      });
      await page.goto(s.nodes.n2.url('/nodes'));
      const notice = page.locator('.state-failed');
      await notice.filter({hasText: 'The database of the fleet does not answer'}).waitFor();
      await notice.filter({hasText: /What is shown is 4\d s old/}).waitFor();
      await event(page, 'stopped main: its head <b>changed</b>');
      await page.getByText('cortex fleet doctor says why').waitFor();
      await page.unroute('**/api/v1/nodes');
      await page.route('**/api/v1/nodes', (route) =>
        route.fulfill({status: 404, json: {status: 404, title: 'None', detail: 'It is gone.'}}),
      );
      await notice.filter({hasText: 'This address does not answer'}).waitFor();
      await notice.filter({hasText: 'It is gone.'}).waitFor();
      await shows(page, 'Nodes', 'n2', 'serving');
      await page.unroute('**/api/v1/nodes');
      await notice.waitFor({state: 'detached'});
      // Paused by a key, nothing is asked any more.
      await page.keyboard.press('p');
      await page.locator('[aria-pressed="true"]', {hasText: 'Pause'}).waitFor();
    },

    async 'a server of a folder has no link to nodes, and says what they are'(page) {
      const home = await serveHome(() => {}, '--otlp', 'off');
      try {
        await page.goto(home.url('/nodes'));
        await page.getByText('This server is not a node of a fleet').waitFor();
        assert.equal(await page.locator('nav').getByRole('link', {name: 'Nodes'}).count(), 0);
      } finally {
        await home.close();
      }
    },
  },
};
