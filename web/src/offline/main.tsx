// main.tsx - the offline verifier: the same script is the page and, in a worker, its checks.

import {render} from 'preact';
import {App} from './app';
import {Checks, serve} from './worker';
import '../style/theme.css';
import '../style/base.css';
import './offline.css';

/** The program, from the file that this page is. */
function engine(): Uint8Array {
  const text = document.getElementById('cortex-verify')!.textContent!;
  return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
}

function start(): void {
  const script = document.currentScript?.textContent ?? null;
  const page = document.getElementById('page')!;
  if (typeof WebAssembly === 'undefined') {
    page.textContent =
      'This browser does not run WebAssembly, or is told not to (lockdown mode), so nothing can be checked here. Use the program cortex-verify.';
    return;
  }
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const look = (): void => {
    document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light';
  };
  look();
  dark.addEventListener('change', look);
  const {version, digest} = page.dataset as {version: string; digest: string};
  render(<App checks={new Checks(engine(), script)} version={version} digest={digest} />, page);
}

if (typeof document === 'undefined') serve(self as unknown as Parameters<typeof serve>[0]);
else start();
