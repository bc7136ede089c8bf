// shots.mjs DIR [NAME..] - pictures of all screens, or of those whose names hold one of the arguments:
// light and dark, at 1280 and at 390 pixels, to be looked at.  They are kept out of the repository.

import {createHash} from 'node:crypto';
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {launch, openPage} from './browser.mjs';
import {pictured, timed} from './histories.mjs';
import {goldenId, putBundle, putCase, serveRuns} from './runs.mjs';
import {cortex, ROOT, serveHome, viewFile} from './server.mjs';

const to = process.argv[2] ?? 'shots';
const wanted = process.argv.slice(3);
mkdirSync(to, {recursive: true});
const browser = await launch();

const NARROW = {width: 390, height: 844};
const LOOKS = [
  ['light', {}],
  ['dark', {colorScheme: 'dark'}],
  ['light-390', {viewport: NARROW}],
  ['dark-390', {viewport: NARROW, colorScheme: 'dark'}],
];

/** Each: a name, an address, and what brings the page there. */
async function shoot(name, url, act = async () => {}) {
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) return;
  for (const [look, options] of LOOKS) {
    const {context, page, complaints} = await openPage(browser, options);
    await page.goto(url);
    await page.waitForSelector('main.screen');
    await act(page);
    // Not until the network is idle: some screens keep a stream open.
    await page.waitForFunction(() => !document.querySelector('.state-loading'));
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    await page.screenshot({path: join(to, `${name}-${look}.png`)});
    if (complaints.length) console.log(name, look, complaints);
    await context.close();
  }
}

const waitFor = (selector) => (page) => page.waitForSelector(selector);

/** A file of somebody else, and the key that signed it. */
async function openEvidence(page) {
  const vectors = join(ROOT, 'tests/vectors/evidence');
  const key = Buffer.from(readFileSync(join(vectors, 'key.txt'), 'utf8').trim(), 'hex');
  const id = createHash('sha256')
    .update('recorder')
    .update(Buffer.of(10, 1))
    .update(key)
    .digest('hex')
    .slice(0, 8);
  await page
    .getByLabel('Trusted key or root, obtained out of band')
    .fill(`recorder+${id}+${Buffer.concat([Buffer.of(1), key]).toString('base64')}`);
  await page.getByRole('button', {name: 'Trust', exact: true}).click();
  await page.locator('#own-file').setInputFiles(join(vectors, 'commit.cxe'));
  await page.waitForSelector('.parts');
  await page.evaluate(() => document.querySelector('.report')?.scrollIntoView());
}

async function shootFile() {
  const incident = await viewFile(join(ROOT, 'examples/incident.jsonl'));
  const at = (path) => `${incident.url}&to=${encodeURIComponent(path)}`;
  try {
    await shoot(
      'debugger',
      at('/debugger/file?node=@reviewer&key=memory.refund_limit'),
      waitFor('.why h2, .tab'),
    );
    await shoot('compare', at('/compare/file?a=@coder&b=@planner'), waitFor('.compare-first'));
    await shoot('heatmap', at('/heatmap/file'), waitFor('.heat-hottest'));
  } finally {
    await incident.close();
  }
}

/** Durations, errors and images; and a conversation. */
async function shootSteps() {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-shots-'));
  writeFileSync(join(folder, 'research.jsonl'), timed());
  writeFileSync(join(folder, 'images.jsonl'), pictured());
  const [spans, images] = await Promise.all(
    ['research', 'images'].map((name) => viewFile(join(folder, `${name}.jsonl`))),
  );
  const at = (served, path) => `${served.url}&to=${encodeURIComponent(path)}`;
  try {
    await shoot(
      'time',
      at(spans, '/debugger/file?view=lanes&axis=time&node=%232'),
      waitFor('.scrub-legend'),
    );
    await shoot(
      'conversation',
      at(spans, '/debugger/file?view=text&node=%232'),
      waitFor('.talk-error'),
    );
    await shoot('images', at(images, '/debugger/file?view=text'), waitFor('.talk img'));
    await shoot('help', at(spans, '/debugger/file?view=lanes'), async (page) => {
      await page.waitForSelector('.event-agent');
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
    });
  } finally {
    await Promise.all([spans.close(), images.close()]);
    rmSync(folder, {recursive: true, force: true});
  }
}

/** Nothing recorded yet. */
async function shootFirst() {
  const home = await serveHome();
  try {
    await shoot('first', home.url('/inbox'), waitFor('.inbox-first'));
    await shoot('first-debugger', home.url('/debugger'));
  } finally {
    await home.close();
  }
}

async function shootHome() {
  const traces = join(ROOT, 'examples/traces'),
    alpha = '976dbe5047633d39';
  const outside = goldenId('out_of_scope'),
    fixed = goldenId('fix_loop');
  let refused = '';
  const home = await serveRuns(
    (runs) => {
      putBundle(runs, 'out_of_scope');
      putBundle(runs, 'fix_loop');
      refused = putCase(runs, 1, {
        intent: 'Add a helper',
        state: 'REFUSED',
        contract: {task_id: 'a_task'},
        preview: {allow: false, gates: {policy: {passed: false, violations: ['wide_path src/']}}},
      });
    },
    (path) => {
      const of = ['--home', path];
      cortex(['key', 'add', ...of, join(traces, 'trust.json')]);
      cortex(['record', ...of, join(traces, 'alpha.json')]);
      cortex(['snapshot', 'make', ...of, '--actor', alpha]);
      cortex(['record', ...of, join(traces, 'beta.json'), join(traces, 'later.json')]);
      cortex(['snapshot', 'make', ...of, '--actor', alpha]);
      cortex(['detect', ...of]);
    },
  );
  try {
    await shoot('inbox', home.url('/inbox'), waitFor('.item-trace'));
    await shoot('trace', home.url('/trace/trace-0f1710aec6e6a530-000005'), waitFor('.trace-here'));
    await shoot('trace-check', home.url('/trace'), waitFor('textarea, input'));
    await shoot('fleet', home.url('/fleet'), waitFor('.fleet-alert'));
    await shoot('traces', home.url(`/debugger/agent/${alpha}`), waitFor('.scrub-legend'));
    await shoot('cases', home.url('/cases'), waitFor('.row'));
    await shoot('case', home.url(`/cases/${refused}`), waitFor('#case-plan'));
    await shoot('runs', home.url('/run'), waitFor('.run-row'));
    await shoot('run', home.url(`/run/${outside}`), waitFor('.run-panes'));
    await shoot('run-changes', home.url(`/run/${fixed}?tab=changes`), waitFor('.run-panes'));
    await shoot('run-events', home.url(`/run/${fixed}?tab=events&event=30`), waitFor('.run-panes'));
    await shoot('run-verify', home.url(`/run/${fixed}?tab=replay`), waitFor('.replay .facts'));
    await shoot(
      'compare-runs',
      home.url(`/compare/run/${outside}?with=${encodeURIComponent('run/' + fixed)}`),
      waitFor('.compare-parting'),
    );
    await shoot(
      'evidence',
      home.url(`/evidence?actor=${alpha}&what=entry&seq=3`),
      waitFor('.proof-rung'),
    );
    await shoot('evidence-file', home.url(`/evidence?actor=${alpha}&what=file`), openEvidence);
  } finally {
    await home.close();
  }
}

try {
  await shootFirst();
  await shootFile();
  await shootSteps();
  await shootHome();
} finally {
  await browser.close();
}
