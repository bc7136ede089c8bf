// compare.test.mjs - where two agents diverge, and the heatmap.

import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {Writer} from './lattice.mjs';
import {goldenId, putBundle, serveRuns} from './runs.mjs';
import {ROOT, viewFile} from './server.mjs';

/** Two agents that do the same, but that the left one asks first, and that they pay other sums. */
function parted() {
  const writer = new Writer();
  const root = writer.add('begin', {action: 'begin'}, {k: 0});
  for (const [who, steps] of [
    ['left', ['look', 'ask', 'think', 'pay', 'end']],
    ['right', ['look', 'think', 'pay', 'end']],
  ])
    for (const [i, action] of steps.entries())
      writer.add(
        who,
        {action},
        action === 'pay' ? {paid: {sum: who}} : {[action]: 1},
        i === 0 ? {parents: [root]} : {},
      );
  return writer.text();
}

const at = (url, path) => url + '&to=' + encodeURIComponent(path);

export default {
  async begin() {
    const folder = mkdtempSync(join(tmpdir(), 'cortex-web-'));
    const file = join(folder, 'steps.jsonl');
    writeFileSync(file, parted());
    const [incident, steps, runs] = await Promise.all([
      viewFile(join(ROOT, 'examples/incident.jsonl')),
      viewFile(file),
      serveRuns((to) => {
        putBundle(to, 'out_of_scope');
        putBundle(to, 'fix_loop');
      }),
    ]);
    return {
      ...incident,
      folder,
      incident,
      steps,
      runs,
      outside: goldenId('out_of_scope'),
      fixed: goldenId('fix_loop'),
    };
  },

  async end(s) {
    await Promise.all([s.incident.close(), s.steps.close(), s.runs.close()]);
    rmSync(s.folder, {recursive: true, force: true});
  },

  tests: {
    async 'two agents stand side by side from their common ancestor'(page, s) {
      await page.goto(at(s.url, '/compare/file?a=@coder&b=@planner'));
      await page.locator('.compare-moment', {hasText: 'Common up to'}).waitFor();
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
      await page.getByText('Both sides are the same event.').waitFor();
      await page.getByText('the states are equal').waitFor();
      await page.evaluate(() => (location.hash = '#/compare/file?a=@coder&b=@nobody'));
      await page
        .getByRole('alert')
        .getByText(/found no node/)
        .waitFor();
    },

    async 'a step that only one of them took moves nothing that follows'(page, s) {
      await page.goto(at(s.steps.url, '/compare/file?a=@left&b=@right'));
      await page
        .getByText('3 identical, 1 similar with different values, 1 only in a, 0 only in b')
        .waitFor();
      const rows = page.locator('.compare-steps tbody tr');
      assert.equal(await rows.count(), 5);
      await rows
        .nth(1)
        .filter({hasText: 'only in a'})
        .filter({hasText: 'first difference'})
        .waitFor();
      await rows.nth(3).filter({hasText: 'similar'}).filter({hasText: 'paid'}).waitFor();
      await rows.nth(4).getByLabel('identical').waitFor();
      await nothingSerious(page);
    },

    async 'two runs are aligned event by event, and swapped'(page, s) {
      await page.goto(s.runs.url(`/run/${s.outside}`));
      await page.locator('#main').getByRole('link', {name: 'Compare'}).click();
      await page.getByRole('heading', {name: 'Choose a run to compare with'}).waitFor();
      await nothingSerious(page);
      await page.locator('.compare-runs a').first().click();
      await page.getByText('run ids count as equal').waitFor();
      await page.locator('tr', {hasText: 'gate.diff'}).first().waitFor();
      await page
        .locator('.compare-parting', {hasText: 'policy_violation'})
        .filter({hasText: 'only in a'})
        .waitFor();
      await page.locator('.compare-first', {hasText: 'last.RUN_CREATED.contract_sha256'}).waitFor();
      await nothingSerious(page);
      // An event of the other run opens in the other run.
      await page
        .locator('.compare-steps td:nth-child(3) a', {hasText: 'MERGE_APPLIED'})
        .first()
        .waitFor();
      assert.match(
        await page
          .locator('.compare-steps td:nth-child(3) a', {hasText: 'MERGE_APPLIED'})
          .getAttribute('href'),
        new RegExp(s.fixed),
      );
      await page.keyboard.press('x');
      await page
        .locator('.compare-steps tr', {hasText: 'policy_violation'})
        .filter({hasText: 'only in b'})
        .waitFor();
      assert.match(page.url(), new RegExp(`compare/run/${s.fixed}`));
      // Against one branch of the other only.
      await page.getByLabel('Side b').selectOption({
        label: await page.getByLabel('Side b').locator('option').nth(1).textContent(),
      });
      await page.getByText(/There are \d+ steps in a/).waitFor();
      assert.match(page.url(), /b=%40run/);
    },

    async 'a run that is not there is said to be missing'(page, s) {
      await page.goto(s.runs.url(`/compare/run/${s.outside}?with=run%2Frun_none`));
      await page.getByRole('alert').waitFor();
    },

    async 'the hottest cell opens in the debugger, by keys and by a click'(page, s) {
      await page.goto(at(s.url, '/heatmap/file?axis=order'));
      await page.getByText('5 branches in total').waitFor();
      await nothingSerious(page);
      await page.getByRole('application').focus();
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowRight');
      await page
        .locator('.heat-words', {hasText: 'user, from step 2: 1 branch in 1 event'})
        .waitFor();
      await page.keyboard.press('Enter');
      await page.locator('.event-agent', {hasText: 'user'}).waitFor();
      await page.goBack();
      await page.locator('.heat-hottest a', {hasText: '3 branches'}).click();
      await page.locator('.event-agent', {hasText: 'planner'}).waitFor();
    },

    async 'layers stand in the address and say when there is nothing'(page, s) {
      await page.goto(at(s.url, '/heatmap/file'));
      await page.getByText('branches in total').waitFor();
      await page.keyboard.press('4');
      await page.getByText('No decision was overridden.').waitFor();
      assert.match(page.url(), /layer=overrides/);
      await page.goBack();
      await page.getByText('branches in total').waitFor();
    },
  },
};
