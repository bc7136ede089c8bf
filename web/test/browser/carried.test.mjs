// carried.test.mjs - one file with page and data: the same views, without a server.

import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Writer} from './lattice.mjs';
import {cortex, ROOT, viewFile} from './server.mjs';

const INCIDENT = join(ROOT, 'examples/incident.jsonl');

function render(from, to, ...more) {
  const done = cortex(['lattice', 'render', from, '--html', '-o', to, ...more]);
  assert.equal(done.status, 0, done.stderr);
  return 'file://' + to;
}

/** What the panes say, without what a file does not know: reasons of changes, and what a step reached. */
const said = (page) =>
  page.evaluate(() =>
    ['.event', '.state', '.why'].map((pane) => {
      const copy = document.querySelector(pane)?.cloneNode(true);
      copy?.querySelectorAll('.reason').forEach((reason) => void reason.remove());
      copy?.querySelectorAll('button.link').forEach((button) => {
        if (button.textContent.includes('What did it reach?')) button.remove();
      });
      return copy?.textContent ?? '';
    }),
  );

/** Brings both to a moment and waits until they say the same of it. */
async function agree(page, other, hash, agent) {
  for (const one of [page, other]) {
    await one.evaluate((to) => (location.hash = to), hash);
    await one.locator('.event-agent', {hasText: agent}).waitFor();
    await one.locator('.why h2').waitFor();
  }
  const end = Date.now() + 60000;
  for (;;) {
    const [a, b] = [await said(page), await said(other)];
    if (Date.now() > end) assert.deepEqual(a, b, hash);
    if (JSON.stringify(a) === JSON.stringify(b) && a.every((text) => text !== '')) return;
  }
}

export default {
  async begin() {
    const folder = mkdtempSync(join(tmpdir(), 'cortex-web-'));
    return {
      folder,
      server: await viewFile(INCIDENT),
      file: render(INCIDENT, join(folder, 'incident.html')),
    };
  },

  async end(s) {
    await s.server.close();
    rmSync(s.folder, {recursive: true, force: true});
  },

  tests: {
    async 'a file shows what a server shows'(page, s) {
      const other = await page.context().newPage();
      await page.goto(s.file);
      await other.goto(s.server.url);
      await page.locator('.event-agent').waitFor();
      await other.locator('.event-agent').waitFor();
      await agree(
        page,
        other,
        '#/debugger/file?node=@reviewer&key=memory.refund_limit',
        'reviewer',
      );
      await agree(page, other, '#/debugger/file?node=@coder&key=memory.phase', 'coder');
      await agree(page, other, '#/debugger/file?node=@planner&key=beliefs.refund_limit', 'planner');
    },

    async 'a part of a long history says what it is a part of'(page, s) {
      const writer = new Writer();
      for (let i = 0; i < 3000; i++)
        writer.add(
          'agent-' + (i % 3),
          {action: 'step', i},
          {['k' + (i % 7)]: i, first: i < 3 ? i : 0},
        );
      writeFileSync(join(s.folder, 'long.jsonl'), writer.text());
      await page.goto(
        render(
          join(s.folder, 'long.jsonl'),
          join(s.folder, 'part.html'),
          '--first',
          '1500',
          '--max',
          '100',
        ),
      );
      await page.getByText('This file contains 100 of 3000 events').waitFor();
      await page.evaluate(() => (location.hash = '#/debugger/file?node=%231530&key=memory.k4'));
      await page.locator('.event-head', {hasText: '#510'}).waitFor();
      // The state behind the edge of the part is there.
      await page.locator('[data-pointer="/memory/k6"]').waitFor();
      await page.evaluate(() => (location.hash = '#/debugger/file?node=%2310'));
      await page.getByRole('alert').getByText('This file contains').waitFor();
    },

    async 'hostile text cannot leave its place'(page, s) {
      const writer = new Writer();
      for (const text of [
        '</script><script>window.pwned=1</script>',
        '<!--<script>',
        ']]>',
        '\u2028</SCRIPT >',
      ])
        writer.add('agent ' + text, {action: text}, {[text]: text});
      writeFileSync(join(s.folder, 'nasty <script>.jsonl'), writer.text());
      await page.goto(render(join(s.folder, 'nasty <script>.jsonl'), join(s.folder, 'nasty.html')));
      await page.locator('.event-agent', {hasText: 'agent'}).waitFor();
      assert.equal(await page.evaluate(() => window.pwned), undefined);
    },
  },
};
