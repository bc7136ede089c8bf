// The sources under tsc --strict, and the published types as programs see them.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {folder, PACKAGE, ROOT} from '../kit.mjs';

const here = path.join(ROOT, 'sdk', 'typescript');
const tsc = path.join(ROOT, 'web', 'node_modules', 'typescript', 'bin', 'tsc');

function compile(words, cwd) {
  const done = spawnSync(process.execPath, [tsc, ...words], {cwd, encoding: 'utf8'});
  return {status: done.status, out: done.stdout};
}

test('the sources', () => {
  const {status, out} = compile(['-p', here, '--noEmit'], here);
  assert.equal(status, 0, out);
});

test('the examples of the page, as TypeScript', (t) => {
  const where = folder(t);
  fs.mkdirSync(path.join(where, 'node_modules', '@cortex'), {recursive: true});
  fs.symlinkSync(PACKAGE, path.join(where, 'node_modules', '@cortex', 'recorder'));
  const page = fs.readFileSync(path.join(ROOT, 'docs', 'sdk-typescript.md'), 'utf8');
  const blocks = [...page.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((match) => match[1]);
  assert.ok(blocks.length >= 5);
  const source = 'declare const console: {log(...values: unknown[]): void};\n' + blocks.join('\n');
  fs.writeFileSync(path.join(where, 'page.mts'), source);
  const words = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022'];
  const {status, out} = compile([...words, '--lib', 'es2022', 'page.mts'], where);
  assert.equal(status, 0, out);
});

test('a program with ESM and one with CommonJS, without the types of Node', (t) => {
  const where = folder(t);
  fs.mkdirSync(path.join(where, 'node_modules', '@cortex'), {recursive: true});
  fs.symlinkSync(PACKAGE, path.join(where, 'node_modules', '@cortex', 'recorder'));
  const source = `
    import * as cortex from '@cortex/recorder';
    const cx: cortex.Client = cortex.init({agent: 'a', redact: (content) => content});
    const value: Promise<number> = cx.step('x', async (s) => { s.set('a', 1, {because: 'b'}); return 1; });
    const plain: string = cx.step('y', () => 'z');
    const tool: (a: {n: number}) => Promise<string> = cx.tool({gate: 'g'}, (a: {n: number}) => String(a.n));
    const same: (n: number) => number = cx.tool((n: number) => n);
    cx.gate('g', async (call) => call.tool === 'x' || 'no');
    export async function end(): Promise<string | undefined> { return (await cx.flush()).root; }
    export const all = [value, plain, tool, same, cortex.testing.memory().steps];
  `;
  const options = [
    '--strict',
    '--noEmit',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--lib',
    'es2022',
  ];
  for (const name of ['a.mts', 'a.cts']) {
    fs.writeFileSync(path.join(where, name), source);
    const good = compile([...options, name], where);
    assert.equal(good.status, 0, `${name}: ${good.out}`);
  }
  fs.writeFileSync(
    path.join(where, 'wrong.mts'),
    `
    import {init} from '@cortex/recorder';
    init({agent: 1});
    init({agent: 'a'}).gate('g', () => 5);
  `,
  );
  const wrong = compile([...options, 'wrong.mts'], where);
  assert.equal(wrong.out.split('error TS').length - 1, 2, wrong.out);
});
