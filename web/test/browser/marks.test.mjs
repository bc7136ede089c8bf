// marks.test.mjs - the strip below the lanes: overrides, snapshots and writes, by keys and by the legend.

import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {Writer} from './lattice.mjs';
import {cortex, ROOT, serveHome, viewFile} from './server.mjs';

const TRACES = join(ROOT, 'examples/traces');
const ALPHA = '976dbe5047633d39';
const at = (url, path) => url + '&to=' + encodeURIComponent(path);

function overridden() {
  const writer = new Writer();
  for (let i = 0; i < 30; i++)
    writer.add(
      'agent',
      {action: 'step', i},
      i === 9 || i === 21
        ? {conscience: {action_was_overridden: true, i}}
        : {k: i % 7 === 0 ? i : 0},
    );
  return writer.text();
}

async function moment(page, seq) {
  await page.locator('.event-head', {hasText: `#${seq}`}).waitFor();
}

function snapshot(home, actor) {
  const made = cortex(['snapshot', 'make', '--home', home, '--actor', actor]);
  assert.equal(made.status, 0, made.stderr);
}

export default {
  async begin() {
    const folder = mkdtempSync(join(tmpdir(), 'cortex-web-'));
    const file = join(folder, 'overridden.jsonl');
    writeFileSync(file, overridden());
    const [view, served] = await Promise.all([
      viewFile(file),
      serveHome((home) => {
        cortex(['key', 'add', '--home', home, join(TRACES, 'trust.json')]);
        cortex(['record', '--home', home, join(TRACES, 'alpha.json')]);
        snapshot(home, ALPHA);
        cortex(['record', '--home', home, join(TRACES, 'later.json')]);
        snapshot(home, ALPHA);
      }),
    ]);
    return {folder, view, served};
  },

  async end(s) {
    await Promise.all([s.view.close(), s.served.close()]);
    rmSync(s.folder, {recursive: true, force: true});
  },

  tests: {
    async 'keys and legend go from override to override, and to the writes of a key'(page, s) {
      await page.goto(at(s.view.url, '/debugger/file?node=%230&fold=0'));
      await moment(page, 0);
      await page.locator('.scrub-kind', {hasText: '2 overrides'}).waitFor();
      await page.keyboard.press('o');
      await moment(page, 9);
      await page.locator('.event-head .badge', {hasText: 'overridden'}).waitFor();
      await page.keyboard.press('n');
      await moment(page, 21);
      await page.keyboard.press('O');
      await moment(page, 9);
      // The legend goes round.
      await page.locator('.scrub-kind', {hasText: 'overrides'}).click();
      await moment(page, 21);
      await page.locator('.scrub-kind', {hasText: 'overrides'}).click();
      await moment(page, 9);
      await nothingSerious(page);
      // Writes are marks, too, when a key is in focus.
      await page.evaluate(() => (location.hash = '#/debugger/file?node=%2315&fold=0&key=memory.k'));
      await moment(page, 15);
      await page.locator('.scrub-kind', {hasText: 'writes of the key'}).waitFor();
      await page.keyboard.press('p');
      await moment(page, 14);
    },

    async 'an override stays in sight when quiet stretches are folded'(page, s) {
      await page.goto(at(s.view.url, '/debugger/file?node=%230&fold=1'));
      await moment(page, 0);
      await page.keyboard.press('o');
      await moment(page, 9);
      assert.equal(await page.getByRole('button', {name: /folded events: unfold/}).count(), 0);
    },

    async 'snapshots stand behind the last event they hold, and lead to their evidence'(page, s) {
      await page.goto(s.served.url(`/debugger/agent/${ALPHA}?node=%230&fold=0`));
      await moment(page, 0);
      await page.locator('.scrub-kind', {hasText: '2 snapshots'}).waitFor();
      await page.keyboard.press('s');
      // Eight traces of six components.
      await moment(page, 47);
      await page
        .locator('.event-held', {hasText: 'Snapshot 0 was taken after this event'})
        .waitFor();
      await page.keyboard.press('s');
      await page
        .locator('.event-held', {hasText: 'Snapshot 1 was taken after this event'})
        .waitFor();
      await page.keyboard.press('S');
      await moment(page, 47);
      await nothingSerious(page);
      await page.locator('.event-held a').click();
      await page.locator('.snapshot[aria-pressed="true"]', {hasText: '#0'}).waitFor();
      assert.equal(await page.locator('#evidence-actor').inputValue(), ALPHA);
    },
  },
};
