// axe.mjs - what axe-core finds on a page; serious things fail a test.

import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Evaluated by the debugger's protocol, which the page's own policy does not bind. */
export async function nothingSerious(page, options = {}) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
  const found = await page.evaluate(
    (more) => globalThis.axe.run(document, {resultTypes: ['violations'], ...more}),
    options,
  );
  const serious = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
  if (serious.length > 0)
    throw new Error(
      'axe found:\n' +
        serious
          .map(
            (one) =>
              `  ${one.id}: ${one.help}\n` +
              one.nodes
                .slice(0, 4)
                .map(
                  (node) =>
                    `    ${node.html.slice(0, 160)} ${node.failureSummary?.replace(/\s+/g, ' ').slice(0, 200)}`,
                )
                .join('\n'),
          )
          .join('\n'),
    );
}
