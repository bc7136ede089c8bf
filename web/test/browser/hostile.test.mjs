// hostile.test.mjs - every screen over hostile records: nothing runs, no policy is violated,
// control characters are shown as symbols, and the page keeps responding.

import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {HOSTILE, hostileKeys, hostileLattice, hostileRun, hostileTraces} from './hostile.mjs';
import {goldenId, serveRuns} from './runs.mjs';
import {cortex, viewFile} from './server.mjs';

const RUN = goldenId('out_of_scope');

/** Everything that must not happen is noted from before the page's first line. */
async function watch(page) {
  const seen = [];
  page.on('dialog', (dialog) => {
    seen.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('popup', () => seen.push('a window was opened'));
  page.on('framenavigated', (frame) => frame.parentFrame() && seen.push(`a frame: ${frame.url()}`));
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', (event) =>
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return seen;
}

/** Settles when nothing is loading, then looks at what the page has become. */
async function look(page, seen, name) {
  await page.locator('main.screen').waitFor();
  await page.waitForFunction(() => document.querySelector('.state-loading') === null, null, {
    timeout: 60000,
  });
  const found = await page.evaluate(async () => {
    const began = performance.now();
    const rawTexts = () => {
      const walker = document.createTreeWalker(
        document.querySelector('#page'),
        NodeFilter.SHOW_TEXT,
      );
      const list = [];
      for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(node.data))
          list.push(
            `${node.parentElement?.closest('[class]')?.className}: ${JSON.stringify(node.data.slice(0, 80))}`,
          );
      for (const one of document.querySelectorAll('#page [title], #page [aria-label]'))
        for (const text of [one.getAttribute('title'), one.getAttribute('aria-label')])
          if (
            /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(text ?? '')
          )
            list.push(`${one.className}: ${JSON.stringify(text.slice(0, 80))}`);
      if (document.title.match(/[\u0000-\u001f\u202a-\u202e]/)) list.push('the title');
      return list.slice(0, 5);
    };
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return {
      frame: performance.now() - began,
      ran: window.pwned ?? null,
      violations: window.violations,
      strange: [
        ...document.querySelectorAll(
          '#page script, #page img, #page iframe, #page object, #page embed, #page style, #page base, #page form[action]',
        ),
      ].map((one) => one.outerHTML.slice(0, 80)),
      handlers: [...document.querySelectorAll('#page *')]
        .flatMap((one) => [...one.attributes])
        .map((one) => one.name)
        .filter((one) => /^on|^srcdoc$/.test(one)),
      links: [...document.querySelectorAll('#page a[href]')]
        .map((one) => one.getAttribute('href'))
        .filter((href) => !/^(#|\/api\/v1\/|https?:\/\/127\.0\.0\.1)/.test(href)),
      raw: rawTexts(),
      nodes: document.querySelectorAll('*').length,
      text: document.querySelector('#page').textContent.length,
      grown: Object.keys(Object.prototype),
    };
  });
  assert.deepEqual(seen, [], name);
  assert.equal(found.ran, null, `${name}: a script ran`);
  assert.deepEqual(found.violations, [], name);
  assert.deepEqual(
    [found.strange, found.handlers, found.links, found.grown],
    [[], [], [], []],
    name,
  );
  assert.deepEqual(found.raw, [], `${name}: a character that acts stands in the page`);
  // A bound against pages that hang or hold a megabyte as nodes, not a measurement.
  assert.ok(
    found.frame < 10000 && found.nodes < 60000 && found.text < 600000,
    `${name}: ${JSON.stringify(found)}`,
  );
}

async function visit(page, url, addresses) {
  const seen = await watch(page);
  await page.goto(url);
  await page.locator('main.screen').waitFor();
  await page.locator('nav.bar a').first().waitFor();
  const bar = await page
    .locator('nav.bar a')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
  for (const address of [...bar, ...addresses]) {
    await page.evaluate((hash) => (location.hash = hash), address);
    await look(page, seen, address);
  }
}

export default {
  async begin() {
    const folder = mkdtempSync(join(tmpdir(), 'cortex-hostile-'));
    const lattice = join(folder, 'hostile.jsonl');
    const traces = join(folder, 'traces.json');
    writeFileSync(lattice, hostileLattice());
    const keys = join(folder, 'keys.json');
    writeFileSync(traces, hostileTraces());
    writeFileSync(keys, hostileKeys());
    const count = JSON.parse(hostileTraces()).events.length;
    const home = await serveRuns(
      (runs) => hostileRun(runs),
      (path) => {
        const trusted = cortex(['key', 'add', '--home', path, keys]);
        assert.equal(trusted.status, 0, trusted.stderr);
        const done = cortex(['record', '--home', path, '--json', traces]);
        assert.equal(
          JSON.parse(done.stdout).accepted,
          count,
          done.stdout.slice(0, 3000) + done.stderr,
        );
        cortex(['detect', '--home', path]);
      },
    );
    return {folder, home, view: await viewFile(lattice)};
  },

  async end(s) {
    await Promise.all([s.home.close(), s.view.close()]);
    rmSync(s.folder, {recursive: true, force: true});
  },

  tests: {
    async 'a history: every pane'(page, s) {
      await visit(page, s.view.url, [
        '#/debugger/file?node=#0',
        '#/debugger/file?node=#3&pane=state',
        '#/debugger/file?node=#16&key=memory.k16',
        '#/debugger/file?node=@big&key=memory.big',
        '#/debugger/file?node=#26&key=memory.__proto__',
        '#/debugger/file?node=#27&key=memory.constructor',
        '#/debugger/file?node=%22%3E%3Cimg src=x onerror=window.pwned=1%3E',
        '#/debugger/<script>window.pwned=1</script>',
      ]);
    },

    async 'a run: every pane'(page, s) {
      await visit(page, s.home.url('/run'), [
        '#/run',
        `#/run/${RUN}`,
        `#/run/${RUN}?tab=events&event=30`,
        `#/run/${RUN}?tab=events&filter=constructor`,
        `#/run/${RUN}?tab=files&file=contract.json`,
        `#/run/${RUN}?tab=files&file=tests/stdout.log`,
        `#/run/${RUN}?tab=replay`,
        '#/run/<img src=x onerror=window.pwned=1>',
        `#/debugger/run/${RUN}`,
      ]);
      await page.evaluate((hash) => (location.hash = hash), `#/run/${RUN}?tab=events`);
      await page.locator('.sign', {hasText: 'RLO'}).first().waitFor();
      await page.evaluate((hash) => (location.hash = hash), `#/run/${RUN}?tab=files`);
      await page.locator('.files-list .sign', {hasText: 'ESC'}).first().waitFor();
    },

    'a run at 390 pixels': {
      options: {viewport: {width: 390, height: 844}},
      run: (page, s) =>
        visit(page, s.home.url('/run'), [`#/run/${RUN}`, `#/run/${RUN}?tab=changes`]),
    },

    async 'signed traces: the list, every facet, each kind of text as a trace, the fleet'(page, s) {
      const ask = async (path) =>
        (
          await fetch(s.home.base + path, {headers: {Authorization: `Bearer ${s.home.token}`}})
        ).json();
      const list = (await ask('/api/v1/covenant/traces?limit=1000&level=full_traces&verified=true'))
        .traces;
      assert.equal(
        list.length,
        HOSTILE.filter((text) => text.trim() !== '').length,
        'all of them are signed, and verify',
      );
      // One of each kind: markup, a bidirectional override, control signs and ANSI, a megabyte, names of the language.
      const shown = [
        'trace-0 ',
        'trace-1 ',
        'trace-12 ',
        'trace-16 ',
        'trace-17 ',
        'trace-19 ',
        'trace-25 ',
        'trace-32 ',
      ].map((start) => list.find((trace) => trace.trace_id.startsWith(start)));
      await visit(page, s.home.url('/inbox'), [
        '#/inbox?kind=trace&verdict=verified',
        '#/inbox?q=<script>window.pwned=1</script>',
        '#/inbox?agent=<img src=x onerror=window.pwned=1>',
        '#/inbox?gate=__proto__',
        ...shown.map((trace) => '#/trace/' + encodeURIComponent(trace.trace_id)),
        `#/fleet?agent=${shown[0].agent_id_hash}`,
        '#/fleet?only=<script>window.pwned=1</script>',
      ]);
      await page.evaluate(
        (hash) => (location.hash = hash),
        '#/trace/' + encodeURIComponent(shown[2].trace_id),
      );
      await page.locator('.sign', {hasText: 'RLO'}).first().waitFor();
      await page.locator('.screen-head .badge-good').first().waitFor();
      await page.evaluate((hash) => (location.hash = hash), '#/inbox?kind=trace');
      await page.locator('.item .sign', {hasText: 'ESC'}).first().waitFor();
    },

    'signed traces at 390 pixels': {
      options: {viewport: {width: 390, height: 844}},
      run: (page, s) =>
        visit(page, s.home.url('/inbox'), [
          '#/trace/' + encodeURIComponent(`trace-0 ${HOSTILE[0]}`),
        ]),
    },

    async 'everything else'(page, s) {
      await visit(page, s.home.url('/inbox'), [
        '#/debugger/all',
        '#/evidence/<script>',
        '#/constructor',
        '#/__proto__/__proto__?__proto__=1',
      ]);
    },
  },
};
