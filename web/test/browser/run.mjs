// run.mjs [NAME..] - the page against a real server in a real browser: every *.test.mjs here, or
// those whose names hold one of the arguments.  Exit code 77: it cannot be tried here.

import {existsSync, readdirSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

function skip(why) {
  console.log(`skipped: ${why}`);
  console.log('0 passed, 0 failed, 1 skipped');
  process.exit(77);
}

if (!existsSync(join(HERE, '../../node_modules/playwright-core')))
  skip('web/node_modules is not there; scripts/npm-ci.sh test brings it');
const {CHROMIUM, launch, pagePool} = await import('./browser.mjs');
const {cortex} = await import('./server.mjs');
if (!CHROMIUM) skip('there is no chromium; scripts/install-deps.sh test installs it');
if (!cortex(['lattice', 'view', '--help']).stdout?.includes('lattice view'))
  skip('the program has no page');

const wanted = process.argv.slice(2);
const files = readdirSync(HERE)
  .filter((name) => name.endsWith('.test.mjs'))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
  .sort();
let browser;
try {
  browser = await launch();
} catch (error) {
  skip(`chromium does not start: ${error.message.split('\n')[0]}`);
}

let passed = 0;
let failed = 0;
let skipped = 0;
/** The tests of one file, one after the other, over what they share. */
async function runFile(file) {
  const {default: suite} = await import(`./${file}`);
  const shared = await suite.begin?.();
  if (shared?.skip) {
    console.log(`skipped ${file}: ${shared.skip}`);
    skipped += Object.keys(suite.tests).length;
    return;
  }
  const pages = pagePool(browser);
  for (const [name, test] of Object.entries(suite.tests)) {
    const began = Date.now();
    const open = await pages.open(test.options);
    try {
      await (test.run ?? test)(open.page, shared, open);
      if (open.complaints.length > 0)
        throw new Error(`the page complained:\n  ${open.complaints.join('\n  ')}`);
      passed++;
      console.log(`ok ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${file}: ${name}\n${error.stack}`);
    }
    await pages.leave(open);
  }
  await pages.close();
  await suite.end?.(shared);
}

// Two files at once: most of a test is waiting for the other side.
async function work() {
  for (let file = files.shift(); file; file = files.shift()) {
    try {
      await runFile(file);
    } catch (error) {
      failed++;
      console.log(`FAIL ${file}: could not begin or end\n${error.stack}`);
    }
  }
}
await Promise.all([work(), work()]);
await browser.close();
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed > 0 ? 1 : 0);
