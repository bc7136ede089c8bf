// document_parts.test.mjs - a long session that is one document opens at its newest part; its records
// are counted from 0, and the step at the edge stays in focus from part to part.

import assert from 'node:assert/strict';
import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {cortex, serveHome} from './server.mjs';

const MESSAGES = 9000;
const bar = (page) => page.getByRole('group', {name: 'Part of the history'});
/** Numbers have narrow spaces in them. */
const said = async (page) =>
  (await bar(page).locator('span').first().textContent()).replace(/\s/g, ' ');
const button = (page, name) => bar(page).getByRole('button', {name, exact: true});

function message(i) {
  return {
    id: `m${i}`,
    timestamp: new Date(Date.UTC(2026, 0, 1) + 1000 * i).toISOString(),
    type: i % 2 ? 'gemini' : 'user',
    content: `words of message ${i}.`,
  };
}

/** The step in focus, by the address. */
async function focused(page, place) {
  await page.waitForFunction((node) => location.hash.includes(node), `node=at%3A0%3A${place}&`);
}

export default {
  async begin() {
    return serveHome((home) => {
      const chats = join(home, '../w/chats');
      mkdirSync(chats, {recursive: true});
      const messages = Array.from({length: MESSAGES}, (_, i) => message(i));
      const document = {sessionId: 'g1', projectHash: 'p', messages};
      writeFileSync(join(chats, 'session-1.json'), JSON.stringify(document, null, 2));
      const done = cortex(['watch', '--once', join(home, '../w'), '--home', home]);
      assert.equal(done.status, 0, done.stderr + done.stdout);
    });
  },
  end: (s) => s.close(),

  tests: {
    async 'a document opens at its newest part, and goes to others'(page, s) {
      await page.goto(s.url('/debugger/session/session-1'));
      await bar(page).waitFor();
      assert.match(await said(page), /^Entries 6 144 to 8 999 of 9 000$/);
      await page.getByText('this part is valid').waitFor();
      await button(page, 'Earlier').click();
      await focused(page, 6145);
      assert.match(await said(page), /^Entries 4 096 to 8 191 of 9 000$/);
      await button(page, 'Later').click();
      await focused(page, 8191);
      assert.match(await said(page), /^Entries 6 144 to 8 999 of 9 000$/);
    },

    async 'a link to a record opens the part that has it'(page, s) {
      await page.goto(s.url('/debugger/session/session-1?node=at:0:100'));
      await bar(page).waitFor();
      assert.match(await said(page), /^Entries 0 to 4 095 of 9 000$/);
      await page.locator('.event', {hasText: 'words of message 100.'}).first().waitFor();
    },
  },
};
