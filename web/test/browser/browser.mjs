// browser.mjs - Debian's chromium by Playwright-core.

import {existsSync} from 'node:fs';
import {chromium} from 'playwright-core';

export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
  .find((path) => existsSync(path));

export function launch() {
  return chromium.launch({
    executablePath: CHROMIUM,
    // A container's root has no sandbox; what is opened here is our own page.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
  });
}

/** A page that notes what must not happen: errors, broken policies, requests to anywhere else. */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({
    viewport: {width: 1280, height: 800}, colorScheme: 'light', reducedMotion: 'reduce', ...options,
  });
  context.setDefaultTimeout(30000);
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (401|403|404)/.test(message.text()))
      complaints.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!['127.0.0.1', 'localhost'].includes(url.hostname) && !['data:', 'file:', 'blob:'].includes(url.protocol))
      complaints.push(`asked for ${request.url()}`);
  });
  return {context, page, complaints};
}
