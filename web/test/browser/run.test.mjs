// run.test.mjs - governed runs: gate results, changes, a run in progress, and a record that was
// changed.

import assert from 'node:assert/strict';
import {appendFileSync, chmodSync, mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {goldenId, goldenText, putBundle, putRest, serveRuns} from './runs.mjs';

const OUTSIDE = goldenId('out_of_scope');
const FIXED = goldenId('fix_loop');
const LIVE = goldenId('success');
const TAMPERED = goldenId('tests_fail');
const LARGE = goldenId('tool_gate');
const FILES = 500;
const LINES = 100;

function largePatch() {
  const file = (i) =>
    `diff --git a/src/app/f${i}.c b/src/app/f${i}.c\nnew file mode 100644\n--- /dev/null\n` +
    `+++ b/src/app/f${i}.c\n@@ -0,0 +1,${LINES} @@\n` +
    Array.from({length: LINES}, (_, k) => `+line ${k} of ${i}\n`).join('');
  return Array.from({length: FILES}, (_, i) => file(i)).join('');
}

function rewrite(path, text) {
  chmodSync(path, 0o644);
  writeFileSync(path, text);
}

async function open(page, s, id, query = '') {
  await page.goto(s.url(`/run/${id}${query}`));
  await page.locator('.run-rail .stop').first().waitFor();
}

export default {
  begin: () =>
    serveRuns((runs) => {
      putBundle(runs, 'out_of_scope');
      putBundle(runs, 'fix_loop');
      const tampered = putBundle(runs, 'tests_fail');
      rewrite(
        join(tampered, 'patch.diff'),
        goldenText('tests_fail', 'patch.diff').replace('/*', '/* not'),
      );
      rewrite(join(putBundle(runs, 'tool_gate'), 'patch.diff'), largePatch());
    }),
  end: (s) => s.close(),

  tests: {
    async 'a rejected run: the gate, its rule, the file outside'(page, s) {
      await page.goto(s.url('/run'));
      await page.getByRole('option', {name: /golden_out_of_scope/}).click();
      await page.locator('.gate-bad', {hasText: 'outside the allowed paths: README.md'}).waitFor();
      await page.locator('.stop-failed', {hasText: 'Failed'}).waitFor();
      await page.locator('.changes-head', {hasText: '1 file outside the allowed paths'}).waitFor();
      await page.locator('.diff-outside', {hasText: 'README.md'}).waitFor();
      assert.equal(
        await page.locator('.changes-files .row', {hasText: 'main.c'}).getByText('outside').count(),
        0,
      );
      await page.locator('.gate-bad').getByRole('button', {name: 'event 21'}).click();
      await page.locator('.event-detail', {hasText: 'DIFF_GATE_RESULT'}).waitFor();
      assert.match(page.url(), new RegExp(`${OUTSIDE}\\?event=21`));
      await page.goBack();
      await page.locator('.changes-head').waitFor();
    },

    async 'files link to a chosen editor, and to none before'(page, s) {
      await open(page, s, OUTSIDE);
      await page.locator('.diff-outside', {hasText: 'README.md'}).waitFor();
      assert.equal(await page.locator('a.file-link').count(), 0);
      await page.getByRole('button', {name: 'Help'}).click();
      await page.getByLabel('Open files of steps in').selectOption('VSCodium');
      await page.getByRole('button', {name: 'Close'}).click();
      const name = page.locator('.diff-outside a.file-link');
      await name.waitFor();
      const href = await name.getAttribute('href');
      assert.match(href, /^vscodium:\/\/file\/.+\/README\.md$/);
      const lines = page.locator('.diff-add a.file-link');
      assert.match(await lines.first().getAttribute('href'), /^vscodium:\/\/file\/.+\.\w+:\d+$/);
      await page.reload();
      await name.waitFor();
    },

    async 'the fix loop is a second row, and leads to its events'(page, s) {
      await open(page, s, FIXED);
      assert.equal(await page.locator('.rail-row').count(), 2);
      await page.locator('.rail-fix .stop-done', {hasText: 'Done'}).waitFor();
      await page
        .locator('.rail-fix')
        .getByRole('button', {name: /^Tests|Tests/})
        .click();
      await page.locator('.events-count', {hasText: '5 of 52'}).waitFor();
      await page.getByLabel('Filter the events').fill('gate_failed');
      await page.locator('.events-count', {hasText: '1 of 52'}).waitFor();
      await page.getByRole('tab', {name: 'Files'}).click();
      await page.getByRole('option', {name: /reports\/test_report\.json/}).click();
      await page.locator('.file-tree', {hasText: 'cmd_argv'}).waitFor();
      await page.getByRole('button', {name: 'Text'}).click();
      await page.locator('.file-open .rows', {hasText: '"status": "PASS"'}).waitFor();
    },

    async 'a run is watched as it goes on'(page, s) {
      const lines = goldenText('success', 'events.jsonl').split(/(?<=\n)/);
      const folder = join(s.runs, LIVE);
      mkdirSync(folder, {recursive: true});
      writeFileSync(join(folder, 'events.jsonl'), lines.slice(0, 8).join(''));
      await open(page, s, LIVE);
      await page.locator('.stop-now', {hasText: 'Work'}).waitFor();
      await page.getByRole('option', {name: /WORKTREE_CREATED/}).waitFor();
      await page.getByRole('button', {name: 'Follow', exact: true}).waitFor();
      appendFileSync(
        join(folder, 'events.jsonl'),
        lines.slice(8, 24).join('') + lines[24].slice(0, 30),
      );
      await page.locator('.stop-now', {hasText: 'Review'}).waitFor();
      await page.locator('.gate', {hasText: 'Diff'}).waitFor();
      await page.locator('.events-count', {hasText: '24'}).waitFor();
      putRest(s.runs, 'success');
      appendFileSync(join(folder, 'events.jsonl'), lines[24].slice(30) + lines.slice(25).join(''));
      await page.locator('.stop-done', {hasText: 'Done'}).waitFor();
      await page.locator('.run-head .badge', {hasText: 'success'}).waitFor();
      await page.getByRole('tab', {name: 'Changes'}).click();
      await page.locator('.changes-head', {hasText: '2 files'}).waitFor();
    },

    async 'a record that was changed is broken, and it is said why'(page, s) {
      await open(page, s, TAMPERED);
      const broken = page.getByRole('alert');
      await broken.getByText('The bundle does not match what was recorded').waitFor();
      await broken.getByText('file_hash_mismatch', {exact: true}).first().waitFor();
      await broken.getByText('a file does not match the manifest').waitFor();
      await broken.getByText('patch.diff', {exact: true}).first().waitFor();
      await page.getByRole('button', {name: 'record broken'}).click();
      await page.locator('#replay').click();
      await page.locator('.replay-result', {hasText: 'replay diverged'}).waitFor();
      await page.locator('.replay-result li', {hasText: 'patch.diff'}).first().waitFor();
    },

    async 'replay compares with another run'(page, s) {
      await open(page, s, FIXED, '?tab=replay');
      await page.locator('.replay', {hasText: 'no seal for it'}).waitFor();
      await page.getByLabel('Compare with').selectOption(OUTSIDE);
      await page.locator('#replay').click();
      await page.locator('.replay-result', {hasText: 'First difference'}).waitFor();
    },

    async 'a large patch: only what is in view is in the page'(page, s) {
      await open(page, s, LARGE);
      await page.locator('.changes-head', {hasText: /500 files/}).waitFor();
      assert.ok((await page.locator('.changes-rows .row').count()) < 200);
      await page.getByRole('listbox', {name: 'Changed files'}).focus();
      await page.keyboard.press('End');
      await page
        .locator('.changes-rows .diff-file', {hasText: `src/app/f${FILES - 1}.c`})
        .waitFor();
      await page.locator('.changes-rows', {hasText: `line 3 of ${FILES - 1}`}).waitFor();
      assert.ok((await page.locator('.row').count()) < 400);
    },

    async 'a run that is not there, and how it is said'(page, s) {
      await page.goto(s.url('/run/run_20260101_000000_00000000000000000000000000000000'));
      await page.getByRole('alert').getByText('there is no run run_20260101').waitFor();
    },
  },
};
