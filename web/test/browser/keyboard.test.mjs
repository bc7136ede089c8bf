// keyboard.test.mjs - the page without a mouse: dialogs, the state's tree, and every control by Tab.

import assert from 'node:assert/strict';
import {join} from 'node:path';
import {cortex, ROOT, serveHome} from './server.mjs';

/** The control that has the focus: its name, and whether a person sees it and that it is chosen. */
const focused = (page) =>
  page.evaluate(() => {
    const at = document.activeElement;
    if (!at || at === document.body) return null;
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    const name =
      at.getAttribute('aria-label') ?? (at.labels?.[0]?.textContent || at.textContent || at.title);
    return {
      name: name.trim(),
      pointer: at.getAttribute('data-pointer'),
      isSeen: (ring || style.boxShadow !== 'none') && box.width > 0 && box.height > 0,
    };
  });

const hash = (page) => page.evaluate(() => decodeURIComponent(location.hash));
const theme = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

async function waitFor(what) {
  for (const end = Date.now() + 30_000; !(await what()); ) {
    assert.ok(Date.now() < end, `it did not come: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function openIncident(page, s) {
  await page.goto(s.url('/debugger/agent/planner?node=@planner&view=lanes'));
  await page.getByRole('treeitem', {name: 'phase'}).waitFor();
}

export default {
  begin: () =>
    serveHome((home) => {
      const file = join(ROOT, 'examples/incident.jsonl');
      const made = cortex(['lattice', 'import', '--seal', file, '--home', home]);
      assert.equal(made.status, 0, made.stderr);
    }),
  end: (s) => s.close(),

  tests: {
    async 'a dialog has the keyboard to itself and gives the focus back'(page, s) {
      await page.goto(s.url('/inbox'));
      await page.getByRole('option').first().waitFor();
      const colour = await theme(page);
      for (const [name, title] of [
        ['Help', 'What do you want to do?'],
        ['Connect an agent', 'Connect an agent'],
      ]) {
        await page.goto(`${s.base}/#/fleet`);
        const button = page.getByRole('button', {name, exact: true});
        const dialog = page.getByRole('dialog', {name: title});
        for (const key of ['Enter', ' ']) {
          await button.focus();
          await page.keyboard.press(key);
          await dialog.waitFor();
          assert.ok((await focused(page)).isSeen);
          for (const other of ['t', 'g', '/', 'a']) await page.keyboard.press(other);
          assert.equal(await theme(page), colour, `t, behind ${title}`);
          assert.equal(await hash(page), '#/fleet');
          assert.equal(await page.locator('dialog[open]').count(), 1);
          await page.keyboard.press('Escape');
          await dialog.waitFor({state: 'hidden'});
          assert.equal((await focused(page))?.name, name, `after Escape in ${title}`);
          await page.keyboard.press(key);
          await dialog.waitFor();
          await dialog.getByRole('button', {name: 'Close'}).focus();
          await page.keyboard.press(key);
          await dialog.waitFor({state: 'hidden'});
          assert.equal((await focused(page))?.name, name, `after Close in ${title}`);
        }
      }
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor({state: 'hidden'});
    },

    async 'one dialog opens another, which gives the focus back to where the first came from'(
      page,
      s,
    ) {
      await page.goto(s.url('/fleet'));
      await page.getByRole('button', {name: 'Help', exact: true}).focus();
      await page.keyboard.press('Enter');
      const help = page.getByRole('dialog', {name: 'What do you want to do?'});
      await help.getByRole('button', {name: 'Connect an agent'}).focus();
      await page.keyboard.press('Enter');
      const connect = page.getByRole('dialog', {name: 'Connect an agent'});
      await connect.waitFor();
      await page.keyboard.press('?');
      assert.equal(await page.locator('dialog[open]').count(), 1);
      await page.keyboard.press('Escape');
      await connect.waitFor({state: 'hidden'});
      assert.equal((await focused(page))?.name, 'Help');
    },

    async 'the tree of the state: arrows, Home, End, Enter, and Escape keeps the place'(page, s) {
      await openIncident(page, s);
      const press = async (key, pointer) => {
        await page.keyboard.press(key);
        await waitFor(async () => (await focused(page))?.pointer === pointer);
        assert.ok((await focused(page)).isSeen, pointer);
      };
      await page.getByRole('treeitem', {name: 'phase'}).focus();
      await press('Home', '/memory');
      await press('ArrowRight', '/memory/attachments');
      await press('End', '/context_stack');
      await press('ArrowUp', '/goals');
      await press('Home', '/memory');
      await page.locator('[data-pointer="/memory/ticket"]').focus();
      await press('ArrowRight', '/memory/ticket');
      await page.locator('[data-pointer^="/memory/ticket/"]').first().waitFor();
      await press('ArrowDown', '/memory/ticket/id');
      await press('ArrowLeft', '/memory/ticket');
      await press('ArrowLeft', '/memory/ticket'); // closes it
      assert.equal(await page.locator('[data-pointer^="/memory/ticket/"]').count(), 0);
      await press('ArrowLeft', '/memory');
      await press('ArrowLeft', '/memory');
      await waitFor(async () => (await page.getByRole('treeitem').count()) === 4);
      await press('ArrowLeft', '/memory'); // the outermost stays
      await press('ArrowRight', '/memory');
      await page.getByRole('treeitem', {name: 'phase'}).focus();
      await press('Enter', '/memory/phase');
      await waitFor(async () => (await hash(page)).includes('key=memory.phase'));
      await press('Escape', '/memory/phase');
      await waitFor(async () => !(await hash(page)).includes('key='));
    },

    async 'what was asked at the right is closed, and the focus goes back to what asked'(page, s) {
      await openIncident(page, s);
      const row = page.getByRole('treeitem', {name: 'phase'});
      const reach = page.getByRole('button', {name: 'What did it reach?'});
      const close = page.getByRole('button', {name: 'Close'});
      for (const key of ['Enter', ' ']) {
        for (const asks of [row, reach, row]) {
          await asks.focus();
          const {name} = await focused(page);
          await page.keyboard.press(key);
          await close.waitFor();
          await close.focus();
          await page.keyboard.press(key);
          await close.waitFor({state: 'detached'});
          assert.equal((await focused(page))?.name, name);
        }
      }
    },

    async 'a narrow pane shows all of a change'(page, s) {
      await openIncident(page, s);
      await page.setViewportSize({width: 900, height: 700});
      await page.getByRole('treeitem', {name: 'phase'}).focus();
      await page.keyboard.press('Enter');
      const origin = page.getByText('wrote this value');
      await origin.waitFor();
      const {x, width} = await origin.boundingBox();
      assert.ok(x + width <= 900, `the right side is at ${x + width}`);
    },

    async 'Escape leaves a field, and what was typed beside a list does not count'(page, s) {
      await openIncident(page, s);
      await page.keyboard.press('/');
      assert.match((await focused(page)).name, /^Find words/);
      await page.keyboard.press('Escape');
      assert.equal(await focused(page), null);
      await page.goto(`${s.base}/#/compare/agent/planner`);
      const side = page.getByRole('combobox', {name: 'Side a'});
      await side.selectOption({label: 'other event\u2026'});
      const field = page.getByRole('textbox', {name: 'Node a'});
      await field.focus();
      await page.keyboard.type('#1');
      const before = await hash(page);
      await page.keyboard.press('Escape');
      await side.waitFor();
      assert.equal(await hash(page), before);
      await waitFor(async () => (await focused(page))?.name === 'Side a');
    },

    async 'each control of a screen is reached by Tab, seen, and left again'(page, s) {
      for (const [screen, last] of [
        ['inbox', page.getByRole('option').first()],
        ['fleet', page.getByText('What the measures mean')],
        ['evidence', page.getByRole('button', {name: 'Simulate tampering'})],
        ['debugger/agent/planner?view=lanes', page.getByRole('treeitem', {name: 'phase'})],
      ]) {
        await page.goto('about:blank');
        await page.goto(s.url(`/${screen}`));
        await last.waitFor();
        const wanted = await page.evaluate(
          () =>
            [
              ...document.querySelectorAll('a[href], button, input, select, textarea, summary'),
            ].filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility()).length,
        );
        const names = [];
        for (let at; names.length < 200; names.push(at.name)) {
          await page.keyboard.press('Tab');
          at = await focused(page);
          if (at === null || (names.length > 0 && at.name === 'Skip to content')) break;
          assert.ok(at.isSeen, `${screen}: the focus on '${at.name}' is not seen`);
          assert.ok(at.name, `${screen}: a control after '${names.at(-1)}' has no name`);
        }
        assert.equal(names[0], 'Skip to content');
        assert.ok(names.length >= wanted, `${screen}: ${names.length} of ${wanted}: ${names}`);
        assert.ok(names.length < 200, `${screen}: there is no end`);
      }
    },
  },
};
