#!/usr/bin/env node
// build.mjs [--check] [--out FOLDER] - builds the package into dist: ESM, CommonJS, the program, and
// types. esbuild and tsc are those of the page (scripts/npm-ci.sh test); the types of Node are a
// development dependency of this package (scripts/npm-ci.sh sdk), without which no types are written.
//
// --check only checks the types, and needs both.
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const tools = path.join(here, '..', '..', 'web', 'node_modules');
const words = process.argv.slice(2);
const out = words.includes('--out')
  ? path.resolve(words[words.indexOf('--out') + 1])
  : path.join(here, 'dist');

function checkTypes(options) {
  const tsc = path.join(tools, 'typescript', 'bin', 'tsc');
  return spawnSync(process.execPath, [tsc, '-p', here, ...options], {stdio: 'inherit'}).status;
}

if (words.includes('--check')) process.exit(checkTypes(['--noEmit']));

const {build} = await import(pathToFileURL(path.join(tools, 'esbuild', 'lib', 'main.js')).href);
const shared = {
  absWorkingDir: here,
  bundle: true,
  platform: 'node',
  target: 'node18',
  charset: 'utf8',
  logLevel: 'warning',
};
fs.rmSync(out, {recursive: true, force: true});
for (const [file, format] of [
  ['index.mjs', 'esm'],
  ['index.js', 'cjs'],
]) {
  await build({...shared, entryPoints: ['src/index.ts'], outfile: path.join(out, file), format});
}
await build({
  ...shared,
  entryPoints: ['src/cli.ts'],
  outfile: path.join(out, 'cli.js'),
  format: 'cjs',
  banner: {js: '#!/usr/bin/env node'},
});
fs.chmodSync(path.join(out, 'cli.js'), 0o755);

if (fs.existsSync(path.join(here, 'node_modules', '@types', 'node'))) {
  const status = checkTypes(['--emitDeclarationOnly', '--outDir', path.join(out, 'types')]);
  if (status !== 0) process.exit(status);
  fs.writeFileSync(path.join(out, 'types', 'index.d.mts'), "export * from './index.js';\n");
} else {
  console.log('no types: @types/node is not there (scripts/npm-ci.sh sdk)');
}
