// What the tests share: the built package, places to work in, and a real server on loopback.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import {pathToFileURL} from 'node:url';

export const PACKAGE = process.env.CX_SDK_PACKAGE;
export const ROOT = process.env.CX_ROOT;
export const BIN = process.env.CORTEX_BIN;
assert.ok(PACKAGE && ROOT && BIN, 'run tests/sdk_typescript.sh');
export const ENTRY = path.join(PACKAGE, 'dist', 'index.mjs');
export const cortex = await import(pathToFileURL(ENTRY).href);

/** A folder that is removed after the test. */
export function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'cx-sdk-'));
  t.after(() => fs.rmSync(made, {recursive: true, force: true}));
  return made;
}

/** What the recorder logs, as texts. */
export class Said {
  texts = [];
  warn(text) {
    this.texts.push(text);
  }
  error(text) {
    this.texts.push(text);
  }
  has(text) {
    return this.texts.some((one) => one.includes(text));
  }
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function until(what, ms = 30_000) {
  const end = Date.now() + ms;
  while (!(await what())) {
    assert.ok(Date.now() < end, 'it did not come');
    await sleep(20);
  }
}

/** All files of a spool but sockets and the list of rejected steps. */
export function leftIn(where) {
  return fs
    .readdirSync(where, {recursive: false})
    .flatMap((name) => {
      const file = path.join(where, name);
      return fs.statSync(file).isDirectory() ? leftIn(file) : [name];
    })
    .filter((name) => name !== 'rejected.jsonl' && !name.endsWith('.sock'));
}

/** A program as its own process: ESM source that has `cortex` and `words`; ends with its output. */
export function program(source, words = {}, env = {}) {
  const text =
    `import * as cortex from ${JSON.stringify(pathToFileURL(ENTRY).href)};\n` +
    `const words = ${JSON.stringify(words)};\n${source}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
    env: {...process.env, ...env},
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (data) => {
    out += data;
  });
  child.stderr.on('data', (data) => {
    err += data;
  });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({code, signal, out, err}));
  });
  return {
    child,
    ended,
    get out() {
      return out;
    },
    async says(line) {
      await until(() => out.includes(line + '\n') || child.exitCode !== null);
      assert.ok(out.includes(line + '\n'), `it ended: ${out}${err}`);
    },
  };
}

export class Server {
  listen = '127.0.0.1:0';

  constructor(home, options) {
    this.home = home;
    this.options = options;
  }

  /** A server with a data directory of its own, ended after the test. */
  static async start(t, ...options) {
    const home = path.join(folder(t), 'home');
    const made = new Server(home, options);
    made.run('init', '--home', home);
    await made.begin();
    t.after(() => made.end('SIGKILL'));
    return made;
  }

  async begin() {
    this.process = spawn(
      BIN,
      [
        'serve',
        '--home',
        this.home,
        '--listen',
        this.listen,
        '--otlp',
        'off',
        '--json',
        ...this.options,
      ],
      {stdio: ['ignore', 'pipe', 'ignore']},
    );
    const lines = readline.createInterface({input: this.process.stdout});
    const line = await new Promise((resolve, reject) => {
      lines.once('line', resolve);
      lines.once('close', () => reject(new Error('the server did not start')));
    });
    this.url = JSON.parse(line).url;
    this.listen = new URL(this.url).host;
    this.token = fs.readFileSync(path.join(this.home, 'token'), 'latin1').trim();
  }

  run(...words) {
    return execFileSync(BIN, words, {encoding: 'utf8'});
  }

  /** A command on this server's data directory, through the server. */
  command(...words) {
    return this.run(...words, '--home', this.home);
  }

  options_(agent, more = {}) {
    return {
      agent,
      url: this.url,
      token: this.token,
      spoolDir: path.join(this.home, '..', 'spool'),
      keyFile: false,
      log: new Said(),
      ...more,
    };
  }

  /** A recorder of this server, closed after the test. */
  client(t, agent = 'refunds', more = {}) {
    const cx = cortex.init(this.options_(agent, more));
    t.after(() => cx.close(0));
    return cx;
  }

  async get(where) {
    const answer = await fetch(this.url + where, {
      headers: {Authorization: 'Bearer ' + this.token},
    });
    const found = await answer.json();
    assert.equal(answer.status, 200, `${where}: ${JSON.stringify(found)}`);
    return found;
  }

  /** How many nodes the agent has; its history verifies. */
  async count(agent = 'refunds') {
    const name = encodeURIComponent(agent);
    const report = await this.get(`/api/v1/lattice/agent/${name}/verify?strict=true`);
    assert.ok(report.ok, JSON.stringify(report));
    const {heads} = await this.get(`/api/v1/lattice/agent/${name}/heads`);
    return heads.find((head) => head.agent === agent).seq + 1;
  }

  async nodes(agent = 'refunds') {
    const made = [];
    for (let seq = 0, count = await this.count(agent); seq < count; seq++) {
      const found = await this.get(`/api/v1/lattice/agent/${agent}/show?node=${agent}%23${seq}`);
      made.push(found.node);
    }
    return made;
  }

  async events(agent = 'refunds') {
    return (await this.nodes(agent)).map((node) => node.event);
  }

  /** The names that steps put into the agent's memory. */
  async marks(agent = 'refunds') {
    const {state} = await this.get(`/api/v1/lattice/agent/${agent}/state?node=@${agent}`);
    return new Set(Object.keys(state.memory));
  }

  async end(how = 'SIGTERM') {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once('close', resolve));
    this.process.kill(how);
    await ended;
  }
}
