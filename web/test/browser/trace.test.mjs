// trace.test.mjs - one signed decision: what is signed, and a changed one refused with its reason.

import assert from 'node:assert/strict';
import {join} from 'node:path';
import {readFileSync, writeFileSync} from 'node:fs';
import {goldenId, putBundle, serveRuns} from './runs.mjs';
import {cortex, ROOT} from './server.mjs';

const TRACES = join(ROOT, 'examples/traces');
const BETA = '0f1710aec6e6a530';
const TRACE = `/trace/trace-${BETA}-000005`;
const RUN = goldenId('out_of_scope');

export default {
  // Alpha's batch says which run it belongs to.
  begin: () =>
    serveRuns(
      (runs) => putBundle(runs, 'out_of_scope'),
      (home) => {
        const alpha = join(home, '../alpha.json');
        // As text: what is signed are the digits, and JSON.parse does not keep 1.0.
        writeFileSync(
          alpha,
          readFileSync(join(TRACES, 'alpha.json'), 'utf8').replace(
            '{',
            `{"correlation_metadata": {"run_id": "${RUN}"}, `,
          ),
        );
        cortex(['key', 'add', '--home', home, join(TRACES, 'trust.json')]);
        const done = cortex(['record', '--home', home, alpha, join(TRACES, 'beta.json')]);
        assert.equal(done.status, 0, done.stderr);
      },
    ),
  end: (s) => s.close(),

  tests: {
    async 'a trace says what its signature covers and where its chain breaks'(page, s) {
      await page.goto(s.url(TRACE));
      await page.getByRole('heading', {name: 'Signature coverage'}).waitFor();
      assert.equal(await page.locator('.trace-step').count(), 6);
      assert.equal(await page.locator('.trace-cover li:not(.trace-open)').count(), 1);
      await page.getByText('entry 6 does not follow from its predecessor').waitFor();
      await page
        .locator('.trace-words', {hasText: 'A page said that the limit is 50000'})
        .waitFor();
    },

    async 'keys go from component to component and from trace to trace'(page, s) {
      await page.goto(s.url(TRACE));
      await page.locator('.trace-here').waitFor();
      await page.keyboard.press('j');
      await page.locator('.trace-step.trace-chosen').waitFor();
      assert.match(page.url(), /part=1/);
      await page.keyboard.press('[');
      await page.waitForFunction(() => location.hash.includes('-000004'));
      await page.locator('.trace-link.trace-here', {hasText: '#5'}).waitFor();
      await page.goBack();
      await page.locator('.trace-link.trace-here', {hasText: '#6'}).waitFor();
    },

    async 'a component is one step away from the debugger'(page, s) {
      await page.goto(s.url(`${TRACE}?part=4`));
      await page.getByRole('link', {name: 'Show in the history'}).click();
      await page.locator('.event-agent', {hasText: BETA.slice(0, 10)}).waitFor();
      await page.getByText('ASPDMA_RESULT').first().waitFor();
    },

    async 'a trace leads to the run that its batch names, and says that nobody signed that'(
      page,
      s,
    ) {
      await page.goto(s.url('/trace/trace-976dbe5047633d39-000003'));
      await page.getByText('stated by the batch, not signed').waitFor();
      await page.getByRole('link', {name: 'Run that it names'}).click();
      await page.waitForFunction((id) => location.hash === `#/run/${id}`, RUN);
      await page.locator('.gate-bad', {hasText: 'outside the allowed paths: README.md'}).waitFor();
      await page.goBack();
      await page.locator('.trace-link.trace-here').waitFor();
      await page.evaluate((hash) => (location.hash = hash), `#${TRACE}`);
      await page.getByText('entry 6 does not follow').waitFor();
      assert.equal(
        await page.getByRole('link', {name: 'Run that it names'}).count(),
        0,
        'its batch names none',
      );
    },

    async 'a changed trace is refused, and the page says why'(page, s) {
      const changed = readFileSync(join(TRACES, 'alpha.json'), 'utf8').replace(
        '"plausibility_score": 0.9',
        '"plausibility_score": 0.99',
      );
      await page.goto(s.url('/trace'));
      await page.getByLabel('Trace as JSON').fill(changed);
      await page.getByRole('button', {name: 'Check', exact: true}).click();
      await page.getByText('1 of 8 traces failed verification').waitFor();
      await page.locator('.trace-refusal', {hasText: 'changed after signing'}).waitFor();
      await page.locator('.trace-refusal code', {hasText: 'signature_invalid'}).waitFor();
      await page
        .getByLabel('Trace as JSON')
        .fill('{"trace_id": "<img src=x onerror=window.pwned=1>\u202e"');
      await page.getByRole('button', {name: 'Check', exact: true}).click();
      await page.locator('.trace-refusal code', {hasText: 'malformed_json'}).waitFor();
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },

    async 'one that is not recorded is said to be not recorded'(page, s) {
      await page.goto(s.url('/trace/nobody-has-seen-this'));
      await page.getByText('Trace not found').waitFor();
    },
  },
};
