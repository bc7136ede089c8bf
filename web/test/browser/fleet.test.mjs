// fleet.test.mjs - findings of the detectors, and resolving them.

import assert from 'node:assert/strict';
import {join} from 'node:path';
import {cortex, ROOT, serveHome} from './server.mjs';

const TRACES = join(ROOT, 'examples/traces');
const BETA = '0f1710aec6e6a530';

/** Signs in with a token of these scopes. */
async function open(page, s, scopes, to) {
  const made = cortex([
    'token',
    'add',
    '--home',
    s.home,
    '--json',
    ...scopes.flatMap((scope) => ['--scope', scope]),
  ]);
  assert.equal(made.status, 0, made.stderr);
  await page.goto(`${s.base}/#token=${JSON.parse(made.stdout).token}&to=${encodeURIComponent(to)}`);
}

export default {
  begin: () =>
    serveHome((home) => {
      cortex(['key', 'add', '--home', home, join(TRACES, 'trust.json')]);
      cortex(['record', '--home', home, join(TRACES, 'alpha.json'), join(TRACES, 'beta.json')]);
      assert.equal(cortex(['detect', '--home', home]).status, 1);
    }),
  end: (s) => s.close(),

  tests: {
    async 'a broken chain stands first and leads to its trace'(page, s) {
      await page.goto(s.url('/fleet'));
      await page.locator('.fleet-table tbody tr').first().getByText('1 mismatch').waitFor();
      await page.getByText('too few').first().waitFor();
      assert.equal(
        await page.getByRole('button', {name: 'Resolve', exact: true}).count(),
        0,
        'a token without key:admin silences nothing',
      );
      await page.getByRole('link', {name: `trace-${BETA.slice(0, 10)}\u2026-000005`}).click();
      await page.getByText('entry 6 does not follow from its predecessor').waitFor();
    },

    async 'keys choose an agent, and the findings follow'(page, s) {
      await page.goto(s.url('/fleet'));
      await page.locator('.fleet-alert').waitFor();
      await page.keyboard.press('j');
      await page.locator('.fleet-chosen', {hasText: BETA.slice(0, 10)}).waitFor();
      await page.keyboard.press('j');
      await page.getByText('0 of 1, for the selected agent').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('.fleet-alert').waitFor();
    },

    async 'a finding is acknowledged, then resolved'(page, s) {
      await open(page, s, ['trace:read', 'key:admin'], '/fleet');
      await page.getByLabel('Notes').fill('the agent lost a file');
      await page.getByRole('button', {name: 'Acknowledge'}).click();
      await page.getByText('Acknowledged', {exact: true}).waitFor();
      await page.getByRole('button', {name: 'Resolve', exact: true}).click();
      await page.getByText('Resolved', {exact: true}).waitFor();
    },
  },
};
