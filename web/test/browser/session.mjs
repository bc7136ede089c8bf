// session.mjs [STEPS..] - how long a session of a coding agent takes to be read: opened as a conversation and as lanes
// for the first time (the server reads and verifies it) and again, and how many bytes that moved.  By default of 1,000
// and of 100,000 steps, in three runs; the last lines say how often as long the largest takes as the smallest.

import {closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {launch, openPage} from './browser.mjs';
import {cortex, serveHome} from './server.mjs';

const RUNS = 3;
const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1000, 100000];

/** Messages, calls and results in turn, every hundredth result an error, as Claude Code writes them. */
function write(path, steps) {
  const file = openSync(path, 'w');
  const begun = Date.parse('2026-11-01T10:00:00Z');
  let text = '';
  for (let i = 0; i < steps; i++) {
    const turn = i % 4;
    const content =
      turn === 0
        ? `Please look at part ${i}. ${'It matters. '.repeat(8)}`
        : turn === 1
          ? [{type: 'tool_use', id: `c${i}`, name: 'Bash', input: {command: `ls part-${i}`}}]
          : turn === 2
            ? [
                {
                  type: 'tool_result',
                  tool_use_id: `c${i - 1}`,
                  content: `file-${i}\n`.repeat(20),
                  is_error: i % 400 === 2,
                },
              ]
            : [{type: 'text', text: `Part ${i} is in order. ${'Nothing is wrong. '.repeat(8)}`}];
    const role = turn === 0 || turn === 2 ? 'user' : 'assistant';
    text +=
      JSON.stringify({
        type: role,
        uuid: `u${i}`,
        parentUuid: i ? `u${i - 1}` : null,
        sessionId: 'long',
        timestamp: new Date(begun + i * 1000).toISOString(),
        message: {role, content},
      }) + '\n';
    if (text.length > 1 << 20) {
      writeSync(file, text);
      text = '';
    }
  }
  writeSync(file, text);
  closeSync(file);
}

/** What a page takes until `seen` is there, and what it received for that. */
async function opened(browser, url, seen) {
  const {context, page, complaints} = await openPage(browser);
  const watch = await context.newCDPSession(page);
  let bytes = 0;
  await watch.send('Network.enable');
  watch.on('Network.loadingFinished', (one) => (bytes += one.encodedDataLength));
  const since = performance.now();
  await page.goto(url);
  await page.locator(seen).first().waitFor();
  await page.locator('.event-agent').waitFor();
  const took = performance.now() - since;
  await context.close();
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
  return {took, bytes};
}

async function measure(browser, steps) {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-session-'));
  try {
    const path = join(folder, 'long.jsonl');
    write(path, steps);
    const home = await serveHome((at) => cortex(['watch', '--home', at, '--once', folder]));
    const found = {};
    try {
      const name = '/debugger/session/long';
      found.first = await opened(browser, home.url(`${name}?view=text`), '.talk-step');
      found.text = await opened(browser, home.url(`${name}?view=text`), '.talk-step');
      found.lanes = await opened(browser, home.url(`${name}?view=lanes`), '.lane-canvas');
    } finally {
      await home.close();
    }
    return {...found, size: statSync(path).size};
  } finally {
    rmSync(folder, {recursive: true, force: true});
  }
}

const WORDS = {first: 'opened first', text: 'conversation again', lanes: 'lanes again'};
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const browser = await launch();
const runs = [];
for (let run = 0; run < RUNS; run++) {
  const all = [];
  for (const steps of sizes) {
    const found = await measure(browser, steps);
    all.push(found);
    console.log(
      `run ${run + 1}, ${steps} steps of ${(found.size / 1e6).toFixed(1)} MB: ` +
        Object.entries(WORDS)
          .map(
            ([what, words]) =>
              `${words} ${Math.round(found[what].took)} ms, ${Math.round(found[what].bytes / 1000)} kB`,
          )
          .join('; '),
    );
  }
  runs.push(all);
}
for (const [what, words] of Object.entries(WORDS)) {
  const ratios = runs.map((all) => all.at(-1)[what].took / all[0][what].took);
  console.log(
    `${words}: ratio ${median(ratios).toFixed(2)} (${ratios.map((one) => one.toFixed(2)).join(', ')})`,
  );
}
await browser.close();
