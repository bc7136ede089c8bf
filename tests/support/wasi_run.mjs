// wasi_run.mjs PROGRAM.wasm FOLDER - runs a WebAssembly program over and over, under node's own WASI.
//
// Standard input has one JSON list of arguments a line; FOLDER is the program's working folder.  Each is
// answered by a line {"exit","stdout","stderr"}, texts in base64; a trap is {"trap": why}.
import {closeSync, mkdtempSync, openSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {WASI} from 'node:wasi';

const [program, folder] = process.argv.slice(2);
const compiled = await WebAssembly.compile(readFileSync(program));
const output = mkdtempSync(join(tmpdir(), 'cortex-wasi-'));

async function run(args) {
  const files = [join(output, 'out'), join(output, 'err')];
  const [stdout, stderr] = files.map((file) => openSync(file, 'w'));
  const answer = {};
  try {
    const wasi = new WASI({
      version: 'preview1',
      args: ['cortex-verify', ...args],
      env: {},
      preopens: {'.': folder},
      stdout,
      stderr,
      returnOnExit: true,
    });
    const instance = await WebAssembly.instantiate(compiled, wasi.getImportObject());
    answer.exit = wasi.start(instance);
  } catch (error) {
    answer.trap = String(error);
  }
  closeSync(stdout);
  closeSync(stderr);
  answer.stdout = readFileSync(files[0]).toString('base64');
  answer.stderr = readFileSync(files[1]).toString('base64');
  return answer;
}

for (const line of readFileSync(0, 'utf8').split('\n'))
  if (line !== '') process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + '\n');
rmSync(output, {recursive: true});
