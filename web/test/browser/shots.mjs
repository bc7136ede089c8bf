// shots.mjs DIR - pictures of the screens, light and dark, at 1280 and at 390 pixels: to be looked
// at.  They are kept out of the repository.

import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {launch, openPage} from './browser.mjs';
import {cortex, ROOT, serveHome, viewFile} from './server.mjs';

const to = process.argv[2] ?? 'shots';
mkdirSync(to, {recursive: true});
const browser = await launch();

/** Each: a name, and what brings a page there. */
async function shoot(name, url, act = async () => {}) {
  for (const [look, options] of [
    ['light', {}], ['dark', {colorScheme: 'dark'}],
    ['light-390', {viewport: {width: 390, height: 844}}],
  ]) {
    const {context, page, complaints} = await openPage(browser, options);
    await page.goto(url);
    await page.waitForSelector('main.screen');
    await act(page);
    await page.screenshot({path: join(to, `${name}-${look}.png`)});
    if (complaints.length) console.log(name, look, complaints);
    await context.close();
  }
}

const incident = await viewFile(join(ROOT, 'examples/incident.jsonl'));
try {
  await shoot('debugger', incident.url, async (page) => {
    await page.waitForSelector('.event-agent');
    await page.evaluate(() => (location.hash = '#/debugger/file?node=@reviewer&key=memory.refund_limit'));
    await page.waitForSelector('.why h2, .tab');
    await page.waitForLoadState('networkidle');
  });
  await shoot('compare', `${incident.url}&to=${encodeURIComponent('/compare/file?a=@coder&b=@planner')}`, (page) => page.waitForSelector('.compare-first'));
} finally {
  await incident.close();
}

const traces = join(ROOT, 'examples/traces');
const home = await serveHome((path) => {
  cortex(['key', 'add', '--home', path, join(traces, 'trust.json')]);
  cortex(['record', '--home', path, join(traces, 'alpha.json'), join(traces, 'beta.json'), join(traces, 'later.json')]);
  cortex(['detect', '--home', path]);
});
try {
  await shoot('inbox', home.url('/inbox'), (page) => page.waitForSelector('.item-trace'));
  await shoot('trace', home.url('/trace/trace-0f1710aec6e6a530-000005'), (page) => page.waitForSelector('.trace-here'));
  await shoot('fleet', home.url('/fleet'), (page) => page.waitForSelector('.fleet-alert'));
  await shoot('heatmap', home.url('/heatmap/all?layer=cost'), (page) => page.waitForSelector('.heat-hottest'));
  await shoot('traces', home.url('/debugger/all'), (page) => page.waitForSelector('.event-agent'));
} finally {
  await home.close();
  await browser.close();
}
