// browser.mjs - Debian's chromium by Playwright-core.

import {existsSync} from 'node:fs';
import {chromium} from 'playwright-core';

export const CHROMIUM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => existsSync(path));

export function launch() {
  return chromium.launch({
    timeout: 120000, // a machine with other load starts it late
    executablePath: CHROMIUM,
    // A container's root has no sandbox; what is opened here is our own page.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--force-color-profile=srgb',
    ],
  });
}

async function openContext(browser, options) {
  const context = await browser.newContext({
    viewport: {width: 1280, height: 800},
    colorScheme: 'light',
    reducedMotion: 'reduce',
    ...options,
  });
  context.setDefaultTimeout(60000);
  return context;
}

/** Contexts by their options, for pages one after the other: what a page has loaded is not read and compiled again for
 *  the next one.  Cookies and what was stored go between them, so that no page knows of the one before. */
export function pagePool(browser) {
  const contexts = new Map();
  return {
    async open(options = {}) {
      const key = JSON.stringify(options);
      if (!contexts.has(key)) contexts.set(key, await openContext(browser, options));
      return openPage(browser, options, contexts.get(key));
    },
    async leave({context, page}) {
      await page
        .evaluate(() => {
          localStorage.clear();
          sessionStorage.clear();
        })
        .catch(() => {}); // a page of a file, or one that was never opened, has none
      for (const one of context.pages()) await one.close();
      await context.clearCookies();
    },
    async close() {
      for (const context of contexts.values()) await context.close();
    },
  };
}

/** A page that notes what must not happen: errors, broken policies, requests to anywhere else. */
export async function openPage(browser, options = {}, shared = null) {
  const context = shared ?? (await openContext(browser, options));
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (401|403|404)/.test(message.text()))
      complaints.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (
      !['127.0.0.1', 'localhost'].includes(url.hostname) &&
      !['data:', 'file:', 'blob:'].includes(url.protocol)
    )
      complaints.push(`asked for ${request.url()}`);
  });
  return {context, page, complaints};
}
