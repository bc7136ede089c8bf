// run_parts.test.mjs - a long run opens at its newest part, and the rest is read when it is looked at.

import assert from 'node:assert/strict';
import {existsSync, mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {serveRuns} from './runs.mjs';

const RUN = 'run_20260101_000000_00000000000000000000000000000001';
const EVENTS = 9000;
const bar = (page) => page.getByRole('group', {name: 'Part of the history'});
/** Numbers have narrow spaces in them. */
const said = async (page) =>
  (await bar(page).locator('span').first().textContent()).replace(/\s/g, ' ');
const button = (page, name) => bar(page).getByRole('button', {name, exact: true});

/** The governor's first event, one in fifty, and the last; the others are of two tasks. */
function event(i) {
  const ends = i === 0 || i === EVENTS - 1 || i % 50 === 0;
  return JSON.stringify({
    ts: new Date(Date.UTC(2026, 0, 1) + 1000 * i).toISOString().replace('Z', '000Z'),
    level: 'INFO',
    event_type: i === 0 ? 'RUN_CREATED' : i === EVENTS - 1 ? 'RUN_FINISHED' : 'NOTE',
    run_id: RUN,
    task_id: ends ? null : `task_${i % 2}`,
    attempt: null,
    trace_id: '0'.repeat(32),
    payload: {number: i},
  });
}

async function shown(page, number) {
  await page
    .locator('.event', {hasText: `{number: ${number}}`})
    .first()
    .waitFor();
}

export default {
  async begin() {
    return serveRuns((runs) => {
      mkdirSync(join(runs, RUN), {recursive: true});
      const lines = Array.from({length: EVENTS}, (_, i) => event(i));
      writeFileSync(join(runs, RUN, 'events.jsonl'), lines.join('\n') + '\n');
    });
  },
  end: (s) => s.close(),

  tests: {
    async 'it opens at the newest part, without the rest'(page, s) {
      const list = [];
      page.on('request', (request) => list.push(request.url().split('/api/v1/view/')[1] ?? ''));
      await page.goto(s.url(`/debugger/run/${RUN}`));
      await page.getByText('2 856 events').waitFor();
      assert.match(await said(page), /^Entries 6 144 to 8 999 of 9 000$/);
      await page.getByText('this part is valid').waitFor();
      assert.deepEqual(
        list.filter((path) => path.startsWith('run/') && !path.includes('/extent')),
        [],
      );
      assert.ok(existsSync(join(s.runs, '../places', RUN)));
    },

    async 'a middle part has the same steps with the same hashes'(page, s) {
      const node = async (path, name) => {
        const answer = await fetch(`${s.base}/api/v1/view/${path}/node?node=${name}`, {
          headers: {Authorization: `Bearer ${s.token}`},
        });
        assert.equal(answer.status, 200);
        return answer.json();
      };
      const of = await node(`part/2048/run/${RUN}`, '%23100');
      const whole = await node(`run/${RUN}`, '%232148');
      assert.equal(of.hash, whole.hash);
      await page.goto(s.url(`/debugger/run/${RUN}?part=2048&node=${of.hash}`));
      await shown(page, 2148);
      await page.getByText('Entries 2 048 to 6 143 of 9 000').waitFor();
    },

    async 'earlier and later parts keep the event at the edge in focus'(page, s) {
      await page.goto(s.url(`/debugger/run/${RUN}?part=6144&node=%230`));
      await shown(page, 6144);
      await button(page, 'Earlier').click();
      await page.getByText('Entries 4 096 to 8 191 of 9 000').waitFor();
      await shown(page, 6144);
      await button(page, 'First').click();
      await page.getByText('Entries 0 to 4 095 of 9 000').waitFor();
      await button(page, 'Later').click();
      await page.getByText('Entries 2 048 to 6 143 of 9 000').waitFor();
      await shown(page, 4095);
    },

    async 'an arrow key goes over the edge of a part'(page, s) {
      await page.goto(s.url(`/debugger/run/${RUN}?part=6144&node=%230`));
      await shown(page, 6144);
      await page.keyboard.press('ArrowLeft');
      await shown(page, 6143);
      assert.match(await said(page), /^Entries 4 096 to /);
    },
  },
};
