// axe.test.mjs - every screen, light and dark, at 1280 and at 390 pixels: axe-core finds nothing
// serious or critical, and no hash stands where people read names.

import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {noHashes} from './names.mjs';
import {goldenId, putBundle, putCase, serveRuns} from './runs.mjs';
import {cortex, ROOT} from './server.mjs';

const TRACES = join(ROOT, 'examples/traces');
const OUTSIDE = goldenId('out_of_scope');
const FIXED = goldenId('fix_loop');

// Colours do not depend on the width, nor anything else on the colours: each is looked at once.
const COLOURS = {runOnly: ['color-contrast', 'link-in-text-block']};
const SHAPES = {rules: {'color-contrast': {enabled: false}}};
const LOOKS = [
  ['light, 1280', 'light', 1280, {}],
  ['dark', 'dark', 1280, COLOURS],
  ['390', 'light', 390, SHAPES],
];

async function every(page, s) {
  await page.goto(s.url('/inbox'));
  await page.locator('nav.bar a').first().waitFor();
  const bar = await page
    .locator('nav.bar a')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
  const trace = '#/trace/' + encodeURIComponent(s.trace);
  const found = [];
  for (const address of [
    ...new Set([
      ...bar,
      '#/debugger/all',
      '#/nodes',
      trace,
      `#/run/${OUTSIDE}`,
      `#/run/${FIXED}?tab=events&event=30`,
      `#/run/${FIXED}?tab=files&file=contract.json`,
      `#/run/${OUTSIDE}?tab=changes`,
      `#/run/${FIXED}?tab=replay`,
      '#/run/none',
      `#/cases/${s.case}`,
      '#/cases/none',
    ]),
  ]) {
    await page.evaluate((hash) => (location.hash = hash), address);
    await page.locator('main.screen').waitFor();
    await page.waitForFunction(
      () =>
        document.querySelector('.state-loading') === null &&
        document.querySelector('main').textContent.trim() !== '',
      null,
      {timeout: 60000},
    );
    await noHashes(page).catch((error) => found.push(`${address}: ${error.message}`));
    for (const [name, colorScheme, width, options] of LOOKS) {
      await page.emulateMedia({colorScheme, reducedMotion: 'reduce'});
      await page.setViewportSize({width, height: 800});
      await page.waitForFunction(
        (theme) => document.documentElement.dataset.theme === theme,
        colorScheme,
      );
      await nothingSerious(page, options).catch((error) =>
        found.push(`${address}, ${name}: ${error.message}`),
      );
    }
  }
  if (found.length > 0) throw new Error(found.join('\n'));
}

export default {
  async begin() {
    let id = '';
    const served = await serveRuns(
      (runs) => {
        putBundle(runs, 'out_of_scope');
        putBundle(runs, 'fix_loop');
        id = putCase(runs, 1, {
          intent: 'Add a helper',
          state: 'STARTED',
          contract: {task_id: 'a_task'},
          preview: {allow: false, gates: {policy: {passed: false, violations: ['wide_path src/']}}},
          runs: [OUTSIDE],
        });
      },
      (home) => {
        cortex(['key', 'add', '--home', home, join(TRACES, 'trust.json')]);
        cortex(['record', '--home', home, join(TRACES, 'alpha.json'), join(TRACES, 'beta.json')]);
      },
    );
    return {...served, case: id, trace: 'trace-976dbe5047633d39-000000'};
  },
  end: (s) => s.close(),
  tests: {'every screen, light and dark, wide and narrow': every},
};
