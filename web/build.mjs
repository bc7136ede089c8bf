// build.mjs - bundles the page and writes what the program carries.
//
//   node build.mjs [--out DIR] [--table FILE.c]
//
// DIR gets index.html and assets/NAME-HASH.{js,css}; FILE.c the same as tables of bytes, each file
// as it is, by gzip and by brotli, with its SHA-256.  The output depends on the sources and on the
// lock file only: no time, no path, no order of a folder is in it.
import * as esbuild from 'esbuild';
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {brotliCompressSync, constants, gzipSync} from 'node:zlib';

const HERE = dirname(fileURLToPath(import.meta.url));
// The promise of docs/debugger.md: all of the page, compressed, is at most this long.
const MOST_BYTES = 150 * 1024;

function options(argv) {
  const found = {out: join(HERE, 'dist'), table: null};
  for (let i = 0; i < argv.length; i++) {
    const name = argv[i];
    if ((name === '--out' || name === '--table') && i + 1 < argv.length)
      found[name.slice(2)] = argv[++i];
    else throw new Error(`build.mjs: found '${name}', expected --out DIR or --table FILE`);
  }
  return found;
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest();
const hex = (bytes) => sha256(bytes).toString('hex');
const base64 = (bytes) => sha256(bytes).toString('base64');

async function bundle() {
  const result = await esbuild.build({
    absWorkingDir: HERE,
    entryPoints: {page: 'src/main.tsx'},
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
    Buffer.from(result.outputFiles.find((file) => file.path.endsWith(ending)).contents);
  return {script: of('.js'), style: of('.css')};
}

function page(script, style) {
  return Buffer.from(
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n' +
      '<meta name="viewport" content="width=device-width, initial-scale=1">\n' +
      '<meta name="color-scheme" content="light dark">\n<title>Cortex</title>\n' +
      `<link rel="stylesheet" href="assets/${style}">\n` +
      `<script defer src="assets/${script}"></script>\n` +
      '</head>\n<body>\n<div id="page"></div>\n' +
      '<noscript>The debugger needs JavaScript; cortex lattice --help lists the same questions ' +
      'for a terminal.</noscript>\n</body>\n</html>\n',
  );
}

// One file for people who have nothing installed.  Its policy allows this one script and this one
// style, by their hashes, and nothing from anywhere; the data is no script and is never run.
function single(script, style) {
  const code = script.toString('latin1').replace(/<\/(script)/gi, '<\\/$1');
  const looks = style.toString('latin1');
  const policy =
    `default-src 'none'; script-src 'sha256-${base64(Buffer.from(code, 'latin1'))}'; ` +
    `style-src 'sha256-${base64(Buffer.from(looks, 'latin1'))}'; img-src data:; base-uri 'none'; ` +
    `form-action 'none'`;
  const head =
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n' +
    `<meta http-equiv="Content-Security-Policy" content="${policy}">\n` +
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n' +
    '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n' +
    `<title>Cortex</title>\n<style>${looks}</style>\n</head>\n<body>\n<div id="page"></div>\n` +
    '<noscript>This file needs JavaScript to show its data.</noscript>\n' +
    '<script type="application/json" id="cortex-data">';
  return {
    head: Buffer.from(head, 'latin1'),
    tail: Buffer.from(`</script>\n<script>${code}</script>\n</body>\n</html>\n`, 'latin1'),
  };
}

function packed(bytes) {
  return {
    plain: bytes,
    gzip: gzipSync(bytes, {level: 9}),
    brotli: brotliCompressSync(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 11,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  };
}

function bytesOf(name, bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 24)
    lines.push(Array.from(bytes.subarray(at, at + 24)).join(',') + ',');
  return `static const unsigned char ${name}[] = {\n${lines.join('\n')}\n0};\n`;
}

function table(files, one) {
  let text = '/* Made by web/build.mjs. */\n#include "server/page/page_table.h"\n\n';
  let rows = '';
  files.forEach((file, i) => {
    const bodies = packed(file.bytes);
    for (const [kind, bytes] of Object.entries(bodies)) text += bytesOf(`${kind}_${i}`, bytes);
    const body = (kind) => `{${kind}_${i}, ${bodies[kind].length}}`;
    rows +=
      `    {"${file.name}", "${file.type}", "${hex(file.bytes)}", ${file.immutable},\n` +
      `     ${body('plain')}, ${body('gzip')}, ${body('brotli')}},\n`;
  });
  text += bytesOf('single_head', one.head) + bytesOf('single_tail', one.tail);
  return (
    text +
    `\nconst cx_page_file cx_page_table[] = {\n${rows}};\n` +
    `const size_t cx_page_count = ${files.length};\n` +
    `const cx_page_body cx_page_single_head = {single_head, ${one.head.length}};\n` +
    `const cx_page_body cx_page_single_tail = {single_tail, ${one.tail.length}};\n`
  );
}

const wanted = options(process.argv.slice(2));
const {script, style} = await bundle();
const scriptName = `page-${hex(script).slice(0, 16)}.js`;
const styleName = `page-${hex(style).slice(0, 16)}.css`;
const files = [
  {
    name: '',
    type: 'text/html; charset=utf-8',
    immutable: false,
    bytes: page(scriptName, styleName),
  },
  {
    name: `assets/${scriptName}`,
    type: 'text/javascript; charset=utf-8',
    immutable: true,
    bytes: script,
  },
  {name: `assets/${styleName}`, type: 'text/css; charset=utf-8', immutable: true, bytes: style},
];
const compressed = files.reduce((sum, file) => sum + gzipSync(file.bytes, {level: 9}).length, 0);
if (compressed > MOST_BYTES)
  throw new Error(
    `build.mjs: the page is ${compressed} bytes compressed, expected at most ${MOST_BYTES}`,
  );
const one = single(script, style);
rmSync(wanted.out, {recursive: true, force: true});
mkdirSync(join(wanted.out, 'assets'), {recursive: true});
for (const file of files) writeFileSync(join(wanted.out, file.name || 'index.html'), file.bytes);
writeFileSync(
  join(wanted.out, 'single.html'),
  Buffer.concat([one.head, Buffer.from('null'), one.tail]),
);
if (wanted.table) {
  const text = table(files, one);
  let before = null;
  try {
    before = readFileSync(wanted.table, 'utf8');
  } catch {
    // There is none yet.
  }
  if (before !== text) writeFileSync(wanted.table, text);
}
console.log(`page: ${compressed} bytes by gzip (at most ${MOST_BYTES})`);
