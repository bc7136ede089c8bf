// compare.test.mjs - where two agents parted, and where a history is hot.

import assert from 'node:assert/strict';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {ROOT, viewFile} from './server.mjs';

const at = (url, path) => url + '&to=' + encodeURIComponent(path);

export default {
  begin: () => viewFile(join(ROOT, 'examples/incident.jsonl')),
  end: (s) => s.close(),

  tests: {
    async 'two agents stand side by side from their common ancestor'(page, s) {
      await page.goto(at(s.url, '/compare/file?a=@coder&b=@planner'));
      await page.locator('.compare-moment', {hasText: 'Common until'}).waitFor();
      await page.locator('tr', {hasText: 'memory.refund_limit'}).first().waitFor();
      await page.locator('.compare-first', {hasText: 'first difference'}).waitFor();
      await nothingSerious(page);
      await page.keyboard.press('x');
      await page.waitForFunction(() => location.hash.includes('a=%40planner'));
      await page.getByRole('link', {name: 'Why b has this value of memory.refund_limit'}).click();
      await page.locator('.event-agent', {hasText: 'coder'}).waitFor();
      assert.match(page.url(), /key=memory.refund_limit/);
    },

    async 'equal moments differ in nothing, unknown ones are said to be unknown'(page, s) {
      await page.goto(at(s.url, '/compare/file?a=@coder&b=@coder'));
      await page.getByText('Both are the same moment.').waitFor();
      await page.getByText('their states are equal').waitFor();
      await page.evaluate(() => (location.hash = '#/compare/file?a=@coder&b=@nobody'));
      await page.getByRole('alert').getByText('there is no such node').waitFor();
    },

    async 'the hottest cell opens in the debugger, by keys and by a click'(page, s) {
      await page.goto(at(s.url, '/heatmap/file?axis=order'));
      await page.getByText('5 branches off in all').waitFor();
      await nothingSerious(page);
      await page.getByRole('application').focus();
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowRight');
      await page.locator('.heat-words', {hasText: 'user, from step 2: 1 branch off in 1 event'}).waitFor();
      await page.keyboard.press('Enter');
      await page.locator('.event-agent', {hasText: 'user'}).waitFor();
      await page.goBack();
      await page.locator('.heat-hottest a', {hasText: '3 branches off'}).click();
      await page.locator('.event-agent', {hasText: 'planner'}).waitFor();
    },

    async 'layers stand in the address and say when there is nothing'(page, s) {
      await page.goto(at(s.url, '/heatmap/file'));
      await page.getByText('branches off in all').waitFor();
      await page.keyboard.press('4');
      await page.getByText('No decision was overridden.').waitFor();
      assert.match(page.url(), /layer=overrides/);
      await page.goBack();
      await page.getByText('branches off in all').waitFor();
    },
  },
};
