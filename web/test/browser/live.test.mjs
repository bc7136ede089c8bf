// live.test.mjs - an open history grows while steps are recorded.

import assert from 'node:assert/strict';
import {serveHome} from './server.mjs';

async function record(s, ...steps) {
  const answer = await fetch(s.base + '/api/v1/steps', {
    method: 'POST',
    headers: {Authorization: `Bearer ${s.token}`, 'Content-Type': 'application/json'},
    body: JSON.stringify({steps}),
  });
  assert.equal(answer.status, 200, await answer.text());
}

const step = (text, limit) => ({
  agent: 'desk',
  event: {kind: 'decision', text},
  state_delta: {memory: {limit}},
});
const head = (page, text) => page.locator('.screen-head', {hasText: text}).waitFor();
const event = (page, text) => page.locator('.event', {hasText: text}).waitFor();

export default {
  begin: () => serveHome(() => {}, '--otlp', 'off'),
  end: (s) => s.close(),

  tests: {
    async 'an open history of steps moves while steps are recorded'(page, s) {
      await record(s, step('first', 1), step('second', 2));
      await page.goto(s.url('/debugger/agent/desk'));
      await head(page, '2 events');
      await head(page, 'live');
      await event(page, 'second');
      // At the newest event, the focus moves with it: event, state and lanes.
      await record(s, step('third', 3));
      await event(page, 'third');
      await head(page, '3 events');
      await page.locator('[data-pointer="/memory/limit"]', {hasText: '3'}).waitFor();
      // An event that was chosen stays, while the history grows.
      await page.keyboard.press('ArrowLeft');
      await event(page, 'second');
      const address = page.url();
      await record(s, step('fourth', 4), step('fifth', 5));
      await head(page, '5 events');
      await event(page, 'second');
      assert.equal(page.url(), address);
      // What came meanwhile can be walked to.
      for (const text of ['third', 'fourth', 'fifth']) {
        await page.keyboard.press('ArrowRight');
        await event(page, text);
      }
    },

    async 'a chosen event stays where numbers change, and other histories move nothing'(page, s) {
      await record(s, {agent: 'clerk', event: {text: 'alone'}});
      const answer = await fetch(s.base + '/api/v1/view/all/node?node=@clerk', {
        headers: {Authorization: `Bearer ${s.token}`},
      });
      const {n} = await answer.json();
      await page.goto(s.url('/debugger/all?node=%23' + n));
      await event(page, 'alone');
      await head(page, `${n + 1} events`);
      await head(page, 'live');
      await record(s, step('sixth', 6));
      await head(page, `${n + 2} events`);
      await page.waitForURL((url) => url.href.includes(`node=%23${n + 1}`));
      await event(page, 'alone');
      await page.goto(s.url('/debugger/agent/clerk'));
      await head(page, 'live');
      await record(s, step('seventh', 7));
      await page.waitForTimeout(1500);
      await head(page, '1 event');
      await event(page, 'alone');
    },
  },
};
