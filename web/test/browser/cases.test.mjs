// cases.test.mjs - workflow cases: the list with its states, a case with its contract, refusals and
// runs, by pointer and by keyboard.

import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {goldenId, putBundle, putCase, serveRuns} from './runs.mjs';

const OUTSIDE = goldenId('out_of_scope');
const HOSTILE = 'Add <b>bold</b>\u202e and \u001b[31m';

export default {
  async begin() {
    const ids = {};
    const served = await serveRuns((runs) => {
      putBundle(runs, 'out_of_scope');
      ids.refused = putCase(runs, 1, {
        intent: HOSTILE,
        state: 'REFUSED',
        requested_by: 'ticket bot',
        contract: {task_id: 'wide_task', allowed_paths: ['**']},
        preview: {
          allow: false,
          valid: true,
          errors: [],
          baseline_commit: '0'.repeat(40),
          gates: {
            policy: {passed: false, violations: ['wide_path src/']},
            network: {passed: true, violations: []},
          },
        },
      });
      ids.failed = putCase(runs, 2, {
        intent: 'Fix the refund',
        state: 'STARTED',
        contract: {task_id: 'refund'},
        runs: [OUTSIDE],
      });
      ids.planning = putCase(runs, 3, {intent: 'Write the docs', state: 'CANCELLED'});
    });
    return {...served, ids};
  },
  end: (s) => s.close(),

  tests: {
    async 'the list: states, a filter, a case opened by keyboard'(page, s) {
      await page.goto(s.url('/cases'));
      await page.getByRole('option', {name: /Write the docs/}).waitFor();
      assert.equal(await page.getByRole('option').count(), 3);
      await page.getByRole('button', {name: 'Failed'}).click();
      await page.getByRole('option', {name: /failed.*Fix the refund/}).waitFor();
      assert.equal(await page.getByRole('option').count(), 1);
      await page.getByRole('button', {name: 'Done'}).click();
      await page.getByText('No case is done').waitFor();
      await page.getByRole('button', {name: 'All'}).click();
      await page.getByRole('listbox').focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', {name: 'Fix the refund'}).waitFor();
      await page.keyboard.press('r');
      await page.locator('.gate-bad').first().waitFor();
      assert.match(page.url(), new RegExp(OUTSIDE));
    },

    async 'a refused plan: request, refusals, contract; hostile text stays text'(page, s) {
      await page.goto(s.url(`/cases/${s.ids.refused}`));
      await page.getByRole('heading', {name: 'Refused: 1 reason'}).waitFor();
      await page.locator('.case-refusals li', {hasText: 'wide_path src/'}).waitFor();
      await page.getByText('network passes').waitFor();
      await page.locator('.case-contract', {hasText: 'wide_task'}).waitFor();
      await page.getByText('by ticket bot').waitFor();
      const text = await page.locator('.case-text').textContent();
      assert.ok(text.includes('<b>bold</b>') && !text.includes('\u202e'), text);
      assert.equal(await page.locator('.case-text b').count(), 0);
      await page.keyboard.press('l');
      await page.getByRole('option').first().waitFor();
    },

    async 'a case changes while it is looked at'(page, s) {
      const id = putCase(s.runs, 4, {intent: 'Soon', state: 'STARTED', runs: ['run_x']});
      await page.goto(s.url(`/cases/${id}`));
      await page.locator('.screen-head', {hasText: 'running'}).waitFor();
      putCase(s.runs, 4, {intent: 'Soon', state: 'STARTED', runs: [OUTSIDE]});
      await page.locator('.screen-head', {hasText: 'failed'}).waitFor();
      await page.locator('.case-runs li', {hasText: OUTSIDE.slice(0, 30)}).waitFor();
    },

    async 'no case, a damaged case'(page, s) {
      await page.goto(s.url('/cases/none'));
      await page.getByText('no case has this id').waitFor();
      const id = putCase(s.runs, 5, {intent: 'Damaged', state: 'CANCELLED'});
      writeFileSync(join(s.runs, `../cases/${id}.json`), '{');
      await page.goto(s.url('/cases'));
      await page.getByRole('option').first().waitFor();
      assert.equal(await page.getByRole('option', {name: /Damaged/}).count(), 0);
    },
  },
};
