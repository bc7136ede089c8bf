// offline.mjs - makes the offline verifier: one HTML file that carries its script, its style and
// cortex-verify as WebAssembly, and can connect to nothing.
//
//   node offline.mjs --program FILE.wasm --version VERSION --out FILE.html
//
// The output depends on the program, the version, the sources and the lock file only.
import * as esbuild from 'esbuild';
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {fileURLToPath} from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
// The promise of docs/offline-verifier.md.
const MOST_BYTES = 3 << 20;

function options(argv) {
  const found = {};
  for (let i = 0; i + 1 < argv.length; i += 2) found[argv[i]] = argv[i + 1];
  const names = ['--program', '--version', '--out'];
  if (argv.length !== 6 || names.some((name) => found[name] === undefined))
    throw new Error('offline.mjs: expected --program FILE.wasm --version VERSION --out FILE.html');
  if (!/^[0-9]+(\.[0-9]+)*$/.test(found['--version']))
    throw new Error(`offline.mjs: found the version '${found['--version']}', expected numbers`);
  return names.map((name) => found[name]);
}

async function bundle() {
  const result = await esbuild.build({
    absWorkingDir: HERE,
    entryPoints: {page: 'src/offline/main.tsx'},
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['es2021'],
    charset: 'ascii',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    define: {'process.env.NODE_ENV': '"production"'},
    outdir: 'out',
    write: false,
    logLevel: 'warning',
  });
  const of = (ending) =>
    Buffer.from(result.outputFiles.find((file) => file.path.endsWith(ending)).contents).toString(
      'latin1',
    );
  return {script: of('.js').replace(/<\/(script)/gi, '<\\/$1'), style: of('.css')};
}

const hash = (text, form) => createHash('sha256').update(text, 'latin1').digest(form);

const [program, version, out] = options(process.argv.slice(2));
const {script, style} = await bundle();
const engine = readFileSync(program);
// Workers are this script again, from memory; everything else is refused, connections first.
const policy = [
  "default-src 'none'",
  "connect-src 'none'",
  `script-src 'sha256-${hash(script, 'base64')}' 'wasm-unsafe-eval'`,
  `style-src 'sha256-${hash(style, 'base64')}'`,
  'worker-src blob:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');
const text =
  '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n' +
  `<meta http-equiv="Content-Security-Policy" content="${policy}">\n` +
  '<meta name="viewport" content="width=device-width, initial-scale=1">\n' +
  '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n' +
  `<title>Cortex offline verifier</title>\n<style>${style}</style>\n</head>\n<body>\n` +
  `<div id="page" data-version="${version}" data-digest="${createHash('sha256').update(engine).digest('hex')}"></div>\n` +
  '<noscript>This file needs JavaScript to check anything; the program cortex-verify does not.</noscript>\n' +
  `<script type="application/wasm+base64" id="cortex-verify">${engine.toString('base64')}</script>\n` +
  `<script>${script}</script>\n</body>\n</html>\n`;
const bytes = Buffer.from(text, 'latin1');
if (bytes.length > MOST_BYTES)
  throw new Error(`offline.mjs: the file is ${bytes.length} bytes, expected at most ${MOST_BYTES}`);
writeFileSync(out, bytes);
console.log(`${bytes.length} bytes, script ${script.length}, program ${engine.length}`);
