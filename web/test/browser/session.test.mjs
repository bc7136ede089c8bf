// session.test.mjs - sessions of coding agents as they happen: the list, one with its decisions,
// answers to what waits, limits; by pointer and keyboard, with hostile text, small and dark.

import assert from 'node:assert/strict';
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {nothingSerious} from './axe.mjs';
import {HOSTILE} from './hostile.mjs';
import {cortex, serveHome} from './server.mjs';

const CALL = {hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_use_id: 'c1'};

function token(s, ...scopes) {
  const words = scopes.flatMap((one) => ['--scope', one]);
  if (scopes.includes('trace:read')) words.push('--level', 'full_traces');
  const done = cortex([
    'token',
    'add',
    '--home',
    s.home,
    '--name',
    scopes.join('-').replace(/:/g, '_'),
    ...words,
  ]);
  assert.equal(done.status, 0, done.stderr);
  return done.stdout.trim();
}

async function hook(s, session, body, mode = 'enforce') {
  const answer = await fetch(`${s.base}/hook/claude?mode=${mode}`, {
    method: 'POST',
    headers: {Authorization: `Bearer ${s.hooks}`, 'Content-Type': 'application/json'},
    body: JSON.stringify({...CALL, session_id: session, cwd: s.work, ...body}),
  });
  assert.ok([200, 204].includes(answer.status), await answer.clone().text());
  return answer.status === 204 ? null : (await answer.json()).hookSpecificOutput;
}

const run = (s, session, command, more = {}, mode = 'enforce') =>
  hook(s, session, {tool_input: {command}, ...more}, mode);
const actor = (session) => `/live/session:claude-code:${session}`;
const card = (page, text) => page.locator('.live-waits', {hasText: text});
const button = (page, text, name) => card(page, text).getByRole('button', {name, exact: true});

export default {
  async begin() {
    const s = await serveHome(() => {}, '--otlp', 'off');
    s.work = join(s.home, '../shop');
    mkdirSync(s.work);
    s.hooks = token(s, 'hook');
    const person = token(s, 'trace:read', 'session:approve');
    s.signed = (to) => `${s.base}/#token=${person}&to=${encodeURIComponent(to)}`;
    return s;
  },
  end: (s) => s.close(),

  tests: {
    async 'the list says what to do when it is empty, then moves by itself'(page, s) {
      await page.goto(s.signed('/live'));
      await page.getByText('No sessions yet').waitFor();
      await page.getByText('cortex hook install claude').waitFor();
      await nothingSerious(page, {});
      await run(s, 'first', 'ls');
      const row = page.getByRole('option', {name: /shop/});
      await row.getByText('1 call').waitFor();
      await run(s, 'first', 'rm -rf src');
      await row.getByText('1 denied').waitFor();
      await run(s, 'first', 'make all');
      await row.getByText('1 waiting').waitFor();
      await page
        .getByRole('status')
        .getByText('1 call waits for a person')
        .waitFor({state: 'attached'});
      await hook(s, 'second', {hook_event_name: 'SessionEnd', reason: 'other'});
      await page.getByRole('option', {name: /ended/}).waitFor();
      await page.getByRole('button', {name: 'Running only'}).click();
      await page.getByRole('option').first().waitFor();
      await page.waitForFunction(() => document.querySelectorAll('[role=option]').length === 1);
      await page.getByRole('listbox').focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', {name: '1 call waits for a person'}).waitFor();
      await page.keyboard.press('l');
      await page.getByRole('option').first().waitFor();
    },

    async 'a session: each decision with rule, reason, effects and result'(page, s) {
      const call = {tool_use_id: 'r1', agent_id: 'a1', agent_type: 'Explore'};
      await run(s, 'told', 'git log -1', call);
      await run(s, 'told', 'git log -1', {
        ...call,
        hook_event_name: 'PostToolUse',
        tool_response: 'out',
      });
      await run(s, 'told', 'rm -rf src');
      await page.goto(s.signed(actor('told')));
      const rows = page.locator('.live-entry');
      await rows.nth(2).waitFor();
      const done = page.locator('.live-decision', {hasText: 'git log -1'});
      await done.getByText('done, 5 B').waitFor();
      const denied = page.locator('.live-decision', {hasText: 'denied'});
      await denied.locator('summary').focus();
      await page.keyboard.press('Enter');
      await denied.getByText('C07').first().waitFor();
      await denied.locator('.live-effects li', {hasText: 'forbidden'}).first().waitFor();
      await done.locator('summary').click();
      await done.getByText('Explore').waitFor();
      await nothingSerious(page, {});
      // It moves while it is looked at.
      await run(s, 'told', 'git status', {tool_use_id: 'r2'});
      await page
        .locator('.live-decision', {hasText: 'git status'})
        .getByText('no result yet')
        .waitFor();
      await denied.locator('.live-effects li').first().waitFor(); // what was opened stays open
    },

    async 'a waiting call is announced, and approved once'(page, s) {
      await run(s, 'waits', 'ls');
      await page.goto(s.signed(actor('waits')));
      await page.locator('.live-entry').first().waitFor();
      assert.equal((await run(s, 'waits', 'make all')).permissionDecision, 'ask');
      await page
        .getByRole('status')
        .getByText('A call of Bash waits for you')
        .waitFor({state: 'attached'});
      await card(page, 'make all').getByText('C09').waitFor();
      await page.keyboard.press('w');
      await page.waitForFunction(() => document.activeElement.classList.contains('live-waits'));
      await page.keyboard.press('Tab'); // the whole input
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByText("Approved once: the agent's next try").waitFor();
      await card(page, 'make all').waitFor({state: 'detached'});
      assert.equal(await run(s, 'waits', 'make all'), null);
      const row = page.locator('.live-decision', {hasText: /allowed.*make all/});
      await row.locator('summary').click();
      await row.getByText('token:trace_read-session_approve').waitFor();
      assert.equal((await run(s, 'waits', 'make all')).permissionDecision, 'ask');
    },

    async 'for the session it is asked once more, and deny is an answer'(page, s) {
      await run(s, 'both', 'make all');
      await run(s, 'both', 'make check');
      await page.goto(s.signed(actor('both')));
      await button(page, 'make all', 'Approve for this session').click();
      const sure = page.getByRole('alertdialog');
      await sure.getByText('until the session ends').waitFor();
      await nothingSerious(page, {});
      await page.waitForFunction(() => document.activeElement.textContent === 'Cancel');
      await sure.getByRole('button', {name: 'Allow it'}).click();
      await card(page, 'make all').waitFor({state: 'detached'});
      for (let i = 0; i < 3; i++) assert.equal(await run(s, 'both', 'make all'), null);
      await page.waitForTimeout(500); // a click right after a change is not taken
      await button(page, 'make check', 'Deny').click();
      await card(page, 'make check').waitFor({state: 'detached'});
      const answer = await run(s, 'both', 'make check');
      assert.ok(
        answer.permissionDecision === 'deny' && answer.permissionDecisionReason.includes('L04'),
      );
    },

    async 'what a rule forbids needs a second yes'(page, s) {
      await run(s, 'danger', 'rm -rf src', {}, 'ask');
      await page.goto(s.signed(actor('danger')));
      await card(page, 'rm -rf src').getByText('forbidden').first().waitFor();
      await button(page, 'rm -rf src', 'Approve once').click();
      await page.getByRole('alertdialog').getByText('Rule C07 forbids this').waitFor();
      await page.keyboard.press('Enter'); // on Cancel
      await button(page, 'rm -rf src', 'Approve once').waitFor();
      assert.equal((await run(s, 'danger', 'rm -rf src', {}, 'ask')).permissionDecision, 'ask');
      await button(page, 'rm -rf src', 'Approve once').click();
      await page.getByRole('button', {name: 'Allow it anyway'}).click();
      await card(page, 'rm -rf src').waitFor({state: 'detached'});
      assert.equal(await run(s, 'danger', 'rm -rf src', {}, 'ask'), null);
    },

    async 'a session is narrowed and cannot be widened'(page, s) {
      await run(s, 'narrow', 'ls', {}, 'observe');
      await page.goto(s.signed(actor('narrow')));
      await page.getByText('What nothing allows is asked.').waitFor();
      await page.getByText('Narrow this session').click();
      assert.ok(await page.getByRole('button', {name: 'Narrow', exact: true}).isDisabled());
      await page.getByLabel('Write only below').fill('src/, docs/guide.md');
      await page.getByLabel('No network').check();
      await page.getByLabel('Mode').selectOption('enforce');
      await nothingSerious(page, {});
      await page.getByRole('button', {name: 'Narrow', exact: true}).click();
      await page.getByText('Writes only below src/, docs/guide.md.').waitFor();
      await page.locator('.live-policy', {hasText: 'No network.'}).waitFor();
      await page.locator('.live-limit').getByText('token:').waitFor();
      assert.equal(await page.getByLabel('Mode').count(), 0);
      const answer = await hook(
        s,
        'narrow',
        {tool_name: 'Write', tool_input: {file_path: join(s.work, 'x'), content: ''}},
        'observe',
      );
      assert.ok(answer.permissionDecisionReason.includes('L14'), JSON.stringify(answer));
    },

    async 'the inbox lists it, and the debugger shows it as a history'(page, s) {
      await run(s, 'told2', 'git status', {tool_use_id: 'x1'});
      await page.goto(s.signed('/inbox'));
      const row = page.locator('.item', {hasText: 'told2'});
      await row.waitFor();
      await run(s, 'told2', 'rm -rf src', {
        tool_use_id: 'x2',
        agent_id: 'a1',
        agent_type: 'Explore',
      });
      await row.getByText('1 denied').waitFor();
      await row.click();
      await page.waitForURL(/#\/live\/session/);
      await page.getByRole('link', {name: 'History'}).click();
      await page.locator('.screen-head', {hasText: '3 events'}).waitFor();
      await page.locator('.screen-head', {hasText: '2 agents'}).waitFor();
      await page.locator('.talk-step', {hasText: 'deny by rule C07'}).locator('.talk-who').click();
      await page.locator('.event', {hasText: 'C07'}).waitFor();
      await page.locator('.event').getByText('decision').first().waitFor();
      await run(s, 'told2', 'git log -1', {tool_use_id: 'x3'});
      await page.locator('.screen-head', {hasText: '4 events'}).waitFor();
      await nothingSerious(page, {});
    },

    async 'evidence of a session is checked in the browser'(page, s) {
      await run(s, 'proof', 'git status');
      await run(s, 'proof', 'rm -rf src');
      await page.goto(s.signed(actor('proof')));
      await page.locator('.screen-head').getByRole('link', {name: 'Evidence'}).click();
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', {name: 'Create evidence file'}).click(),
      ]);
      const file = await saved.path();
      await page.goto(s.signed('/evidence?what=file'));
      await page.getByLabel('A proof, manifest, checkpoint or evidence file').setInputFiles(file);
      await page.getByText('Evidence about a session').waitFor();
      await page.getByText('A call that an agent made without its hook has no entry').waitFor();
      const text = await page.locator('main').textContent();
      assert.ok(/indeterminate/.test(text) && !/That nothing was left out/.test(text), text);
    },

    async 'a token that may only look has no buttons'(page, s) {
      await run(s, 'look', 'make all');
      await page.goto(s.url(actor('look')));
      await card(page, 'make all').waitFor();
      await page.getByText('This token may only look.').waitFor();
      assert.equal(await page.locator('.live-buttons').count(), 0);
      assert.equal(await page.getByText('Narrow this session').count(), 0);
      await page.goto(s.url('/live/none'));
      await page.getByText('no such session').waitFor();
    },

    'hostile text stays text': {
      options: {viewport: {width: 390, height: 800}, colorScheme: 'dark'},
      async run(page, s) {
        for (const text of HOSTILE.filter((one) => one !== ''))
          await hook(s, 'hostile', {
            tool_name: `Bash`,
            tool_use_id: text.slice(0, 40),
            tool_input: {command: `echo ${text}`, [text]: text},
            agent_type: text,
          });
        await hook(s, 'hostile', {tool_name: HOSTILE[0], tool_input: {[HOSTILE[1]]: HOSTILE[2]}});
        await page.goto(s.signed(actor('hostile')));
        await page.locator('.live-entry').nth(5).waitFor();
        await page.evaluate(() => {
          for (const one of document.querySelectorAll('details')) one.open = true;
        });
        await page.locator('.live-effects').first().waitFor();
        const found = await page.evaluate(() => ({
          pwned: window.pwned,
          acts: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(
            document.querySelector('main').textContent,
          ),
          made: document.querySelectorAll('main img, main iframe, main script, main b, main style')
            .length,
          wide: document.documentElement.scrollWidth,
        }));
        assert.deepEqual(found, {pwned: undefined, acts: false, made: 0, wide: 390});
        await nothingSerious(page, {});
      },
    },
  },
};
