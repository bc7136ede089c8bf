// parts.test.mjs - a long history of an agent opens at its newest part, and the rest is read when it is
// looked at.

import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {Writer} from './lattice.mjs';
import {cortex, serveHome} from './server.mjs';

const STEPS = 9000;
const bar = (page) => page.getByRole('group', {name: 'Part of the history'});
/** Numbers have narrow spaces in them. */
const said = async (page) =>
  (await bar(page).locator('span').first().textContent()).replace(/\s/g, ' ');
const button = (page, name) => bar(page).getByRole('button', {name, exact: true});

/** What is asked of the history, in order. */
function asked(page) {
  const list = [];
  page.on('request', (request) => {
    const at = request.url().indexOf('/api/v1/view/');
    if (at >= 0) list.push(request.url().slice(at + '/api/v1/view/'.length));
  });
  return list;
}

const ofWhole = (list) =>
  list.filter((path) => path.startsWith('agent/') && !path.includes('/extent'));

async function shown(page, seq) {
  await page.locator('.event-head', {hasText: `#${seq}`}).waitFor();
}

export default {
  async begin() {
    const writer = new Writer();
    for (let i = 0; i < STEPS; i++)
      writer.add('desk', {action: 'step', i, text: `step ${i}`}, {['k' + (i % 5)]: i});
    return serveHome((home) => {
      const file = join(home, '../long.jsonl');
      writeFileSync(file, writer.text());
      const done = cortex(['lattice', 'import', '--seal', file, '--home', home]);
      assert.equal(done.status, 0, done.stderr + done.stdout);
    });
  },
  end: (s) => s.close(),

  tests: {
    async 'it opens at the newest part, without the rest'(page, s) {
      const list = asked(page);
      await page.goto(s.url('/debugger/agent/desk'));
      await shown(page, STEPS - 1);
      assert.match(await said(page), /^Entries 6 144 to 8 999 of 9 000$/);
      await page.getByText('this part is valid').waitFor();
      await page.getByText('2 856 events').waitFor();
      assert.deepEqual(ofWhole(list), []);
      assert.match(page.url(), /part=6144/);
    },

    async 'the state says that it needs the whole, which is read when it is asked for'(page, s) {
      const list = asked(page);
      await page.goto(s.url('/debugger/agent/desk'));
      await shown(page, STEPS - 1);
      await page.getByText('The state depends on all steps before').waitFor();
      assert.deepEqual(ofWhole(list), []);
      await page.getByRole('button', {name: 'Read the whole history: 9 000 entries'}).click();
      await page.getByText('9 000 events').waitFor();
      await shown(page, STEPS - 1);
      await page.locator('.state [role=treeitem]', {hasText: 'k0'}).first().waitFor();
      assert.ok(ofWhole(list).length > 0);
      await button(page, 'Show the newest part').click();
      await page.getByText('2 856 events').waitFor();
    },

    async 'earlier and later parts keep the step at the edge in focus'(page, s) {
      await page.goto(s.url('/debugger/agent/desk'));
      await shown(page, STEPS - 1);
      await button(page, 'Earlier').click();
      await shown(page, 6144);
      assert.match(await said(page), /^Entries 4 096 to 8 191 of 9 000$/);
      await button(page, 'First').click();
      await page.getByText('Entries 0 to 4 095 of 9 000').waitFor();
      assert.ok(await button(page, 'Earlier').isDisabled());
      await shown(page, 4095);
      await button(page, 'Later').click();
      await page.getByText('Entries 2 048 to 6 143 of 9 000').waitFor();
      await shown(page, 4095);
      await page.goBack();
      await page.getByText('Entries 0 to 4 095 of 9 000').waitFor();
    },

    async 'an arrow key goes over the edge of a part'(page, s) {
      await page.goto(s.url('/debugger/agent/desk?part=6144&node=%230'));
      await shown(page, 6144);
      await page.keyboard.press('ArrowLeft');
      await shown(page, 6143);
      assert.match(await said(page), /^Entries 4 096 to /);
      await page.keyboard.press('ArrowRight');
      await shown(page, 6144);
    },

    async 'a link to a step opens the part that has it'(page, s) {
      await page.goto(s.url('/debugger/agent/desk?part=0&node=%23100'));
      await shown(page, 100);
      const answer = await fetch(`${s.base}/api/v1/view/part/0/agent/desk/node?node=%23100`, {
        headers: {Authorization: `Bearer ${s.token}`},
      });
      const {hash} = await answer.json();
      const list = asked(page);
      await page.goto('about:blank');
      await page.goto(s.url(`/debugger/agent/desk?node=${hash}`));
      await shown(page, 100);
      assert.match(await said(page), /^Entries 0 to 4 095 /);
      assert.deepEqual(ofWhole(list), []);
    },

    async 'the conversation goes on in the part before'(page, s) {
      await page.goto(s.url('/debugger/agent/desk?part=6144&node=%230&view=text'));
      await shown(page, 6144);
      await page.getByRole('button', {name: 'Show the part before'}).click();
      await page.getByText('Entries 4 096 to 8 191 of 9 000').waitFor();
      await shown(page, 6144);
    },

    async 'what is recorded meanwhile is counted, and is in the newest part'(page, s) {
      await page.goto(s.url('/debugger/agent/desk?part=0&node=%230'));
      await shown(page, 0);
      await page.getByText('live', {exact: true}).waitFor();
      const answer = await fetch(`${s.base}/api/v1/steps`, {
        method: 'POST',
        headers: {Authorization: `Bearer ${s.token}`, 'Content-Type': 'application/json'},
        body: JSON.stringify({steps: [{agent: 'desk', event: {text: 'one more'}}]}),
      });
      assert.equal(answer.status, 200, await answer.text());
      await page.getByText('Entries 0 to 4 095 of 9 001').waitFor();
      await button(page, 'Newest').click();
      await shown(page, STEPS);
      assert.match(await said(page), / of 9 001$/);
    },

    async 'a change tells that what was before may lie in another part'(page, s) {
      await page.goto(s.url('/debugger/agent/desk?part=6144&node=%230'));
      await shown(page, 6144);
      await page.locator('.change-old', {hasText: 'not in this part'}).first().waitFor();
    },
  },
};
