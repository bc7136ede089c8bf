// first.test.mjs - the first minutes: what to connect, the tick when something arrives, and screens
// that offer what can be opened.

import assert from 'node:assert/strict';
import {nothingSerious} from './axe.mjs';
import {serveHome} from './server.mjs';

async function send(s) {
  const answer = await fetch(`${s.base}/api/v1/steps`, {
    method: 'POST',
    headers: {Authorization: `Bearer ${s.token}`, 'Content-Type': 'application/json'},
    body: JSON.stringify({steps: [{agent: 'me', event: {kind: 'note', text: 'hello'}}]}),
  });
  assert.equal(answer.status, 200, await answer.text());
}

export default {
  begin: () => serveHome(() => {}, '--otlp', '127.0.0.1:0'),
  end: (s) => s.close(),

  tests: {
    async 'an empty inbox says how to connect, ticks what arrives, and screens offer it'(page, s) {
      await page.goto(s.url('/debugger'));
      await page.getByText('No histories yet').waitFor();
      await page.getByRole('main').getByRole('button', {name: 'Connect an agent'}).click();
      const dialog = page.getByRole('dialog', {name: 'Connect an agent'});
      await dialog.getByText('OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:').waitFor();
      await nothingSerious(page, {});
      await dialog.getByRole('button', {name: 'Show the inbox'}).click();
      const card = page.locator('.inbox-first');
      await card.getByText(`curl -sS ${s.base}/api/v1/steps`).waitFor();
      assert.match(await card.textContent(), new RegExp(`${s.home}/token`));
      await nothingSerious(page, {});
      assert.equal(await card.locator('.connect-received').count(), 0);
      await page.getByRole('button', {name: 'Connect an agent'}).click();
      await send(s);
      await dialog.locator('[data-way=steps] .connect-received').waitFor();
      assert.equal(await dialog.locator('[data-way=otel] .connect-received').count(), 0);
      await dialog.getByRole('button', {name: 'Close'}).click();
      for (const screen of ['debugger', 'compare']) {
        await page.goto(s.url(`/${screen}`));
        const link = page.locator('.recent li a').first();
        await link.waitFor();
        assert.match(await link.getAttribute('href'), new RegExp(`^#/${screen}/.+`));
      }
      await page.goto(s.url('/debugger'));
      await page.locator('.recent li a').first().click();
      await page.getByText('hello').first().waitFor();
    },

    async 'help is a panel with tasks'(page, s) {
      await page.goto(s.url('/fleet'));
      await page.getByText('What the measures mean').waitFor();
      await page.keyboard.press('?');
      const help = page.getByRole('dialog', {name: 'What do you want to do?'});
      await help.getByRole('link', {name: 'Find out why a value is what it is'}).waitFor();
      await nothingSerious(page, {});
      await help.getByRole('button', {name: 'Connect an agent'}).click();
      await page.getByRole('dialog', {name: 'Connect an agent'}).waitFor();
      assert.equal(await help.isVisible(), false);
    },
  },
};
