// large.mjs [NODES..] - how long a history takes to be seen: opening, the first picture, panning, a why; and how much
// of it the page holds.  By default of 1,000 and of 1,000,000 nodes, one after the other, to be compared.

import {closeSync, mkdtempSync, openSync, rmSync, writeSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {launch, openPage} from './browser.mjs';
import {Writer} from './lattice.mjs';
import {viewFile} from './server.mjs';

const FRAMES = 200;
const sizes = process.argv.slice(2).map(Number);

function write(path, nodes) {
  const file = openSync(path, 'w'),
    writer = new Writer();
  for (let i = 0; i < nodes; i++) {
    const wrong = i % Math.ceil(nodes / 100) === 7;
    writer.add(
      'agent-' + (i % 8),
      {action: 'step', i, text: 'x'.repeat(100)},
      wrong ? {wrong: i} : {['k' + (i % 64)]: i},
    );
    if (writer.lines.length === 10000) {
      writeSync(file, writer.text());
      writer.lines = [];
    }
  }
  if (writer.lines.length > 0) writeSync(file, writer.text());
  closeSync(file);
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const ms = (since) => Math.round(performance.now() - since);

async function measure(browser, nodes) {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-large-'));
  try {
    const path = join(folder, 'large.jsonl');
    write(path, nodes);
    let since = performance.now();
    const server = await viewFile(path);
    const {context, page} = await openPage(browser);
    // The history is read and verified on the first request.
    await page.goto(server.url + '&to=' + encodeURIComponent('/debugger/file?node=@agent-7'));
    await page.locator('.event-agent').waitFor();
    const opened = ms(since);
    since = performance.now();
    await page.reload();
    await page.locator('.event-agent').waitFor();
    await page.locator('.lane-canvas').waitFor();
    const again = ms(since);
    since = performance.now();
    await page.evaluate(() => (location.hash = '#/debugger/file?node=@agent-7&key=memory.wrong'));
    await page.locator('.step').first().waitFor();
    const why = ms(since);
    const box = await page.locator('.lane-canvas').boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.evaluate(() => {
      window.frames_ = [];
      let last = performance.now();
      const tick = (now) => {
        window.frames_.push(now - last);
        last = now;
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    });
    for (let i = 0; i < FRAMES; i++) await page.mouse.wheel(i % 100 < 50 ? -120 : 120, 0);
    const frames = await page.evaluate(() => window.frames_);
    const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
    const elements = await page.evaluate(() => document.querySelectorAll('*').length);
    console.log(
      `${nodes} nodes: opened and shown in ${opened} ms, shown again in ${again} ms, why in ${why} ms, ` +
        `${median(frames).toFixed(1)} ms a frame while panning (most ${Math.max(...frames).toFixed(0)}), ` +
        `${(heap / 1e6).toFixed(1)} MB in the page, ${elements} elements`,
    );
    await context.close();
    await server.close();
  } finally {
    rmSync(folder, {recursive: true});
  }
}

const browser = await launch();
for (const nodes of sizes.length > 0 ? sizes : [1000, 1000000]) await measure(browser, nodes);
await browser.close();
