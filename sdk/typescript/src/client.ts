// The recorder that writes to the spool, and what delivers the spool to the server.
//
// D1  recording waits for one write() to the spool and for nothing else
// D2  delivery reads from the spool, never from the recording calls: memory is one batch
// D3  a step leaves the spool when the server said stored or duplicate, or was put into rejected.jsonl
// D4  nothing here keeps the process alive but flush, why, state, close and the bounded end of it
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import {checkTimeout, messageOf, NotDelivered, ServerError, shownAs, UsageError} from './errors.js';
import {addClient, removeClient} from './exits.js';
import {type Answer, Connection} from './http.js';
import type {SigningKey} from './keys.js';
import {Receipt} from './receipt.js';
import {Change, type Log, Recorder, type Redact, type Stats} from './recorder.js';
import {type AnySpool, type Fsync, type Line, type Part, Queue, Spool} from './spool.js';
import {canonical, digest, type Json, journalOf, toSign} from './values.js';

const BATCH_STEPS = 500;
const BATCH_BYTES = 256 << 10; // small, since a batch is parsed on the thread of the program
const LINGER_MS = 20; // collects what comes together
const BACKOFF_MS = 200;
const BACKOFF_MAX_MS = 30_000;
const PARENT_WAIT_MS = 10_000; // for a parent that another process has not delivered yet
const ADOPT_EVERY_MS = 15_000;
const SYNC_EVERY_MS = 1000;
const KEY_EVERY_MS = 30_000;
const MEMORY_BYTES = 8 << 20;
const FLUSH_MS = 30_000;

interface Outcome {
  status: string;
  reason: string;
  detail: string;
}

export interface ClientOptions {
  agent: string;
  url: string;
  token: string | undefined;
  key: SigningKey | undefined;
  /** Opens the spool; called when everything else was accepted. */
  open: () => AnySpool;
  redact: Redact | undefined;
  register: boolean;
  timeoutMs: number;
  exitTimeoutMs: number;
  ca: string | undefined;
  log: Log;
}

/** What `init` returns. */
export class Client extends Recorder {
  readonly url: string;
  /** @internal */
  readonly exitTimeoutMs: number;
  private readonly spool: AnySpool;
  private readonly connection: Connection;
  private readonly questions: Connection;
  private readonly register: boolean;
  private closed = false;
  private timer: NodeJS.Timeout | undefined;
  private due = Infinity; // when the timer fires
  private sending: Promise<void> | undefined;
  private flushes = 0; // how many calls wait for delivery
  private waiting: (() => void)[] = [];
  private ownDone = 0; // own steps that left the spool
  private newest: Json | undefined; // the answer about the newest own step
  private failures = 0;
  private lastProblem = '';
  private retryAt = 0; // of the server
  private readonly heldSince = new Map<string, number>(); // part -> since when its first step waits
  private readonly limits = new Map<string, number>(); // part -> steps a batch while one is looked for
  private readonly notBefore = new Map<string, number>();
  private nextAdopt = 0;
  private nextSync = 0;
  private keyAsked = -Infinity;
  private damageSaid = 0;

  private constructor(options: ClientOptions) {
    super(options.agent, options.key, options.redact, options.log);
    this.url = options.url;
    this.exitTimeoutMs = options.exitTimeoutMs;
    this.register = options.register;
    this.connection = new Connection(options.url, options.token, options.timeoutMs, options.ca);
    this.questions = new Connection(options.url, options.token, options.timeoutMs, options.ca);
    this.spool = options.open();
    if (options.token && !this.connection.secure && !this.connection.here) {
      this._warn(`the token is sent to ${this.url} without encryption`);
    }
    addClient(this);
    this.wakeAt(0); // adopts what was left
  }

  /** @internal */
  static open(options: ClientOptions): Client {
    return new Client(options);
  }

  // --- recording ---

  protected override store(_step: Json, line: string): boolean {
    if (this.closed || !this.spool.append(line)) return false;
    this.wakeAt(LINGER_MS);
    return true;
  }

  protected override whyNot(): string {
    return this.closed ? 'the recorder is closed' : this.spool.whyNot;
  }

  override get stats(): Stats {
    const made = super.stats;
    for (const part of this.spool.parts()) {
      made.damaged += part.damaged;
      made.torn += part.torn;
    }
    made.pending = this._left();
    return made;
  }

  // --- delivery ---

  /** Delivers in `ms`, or earlier if that is due already. The timer does not keep the process alive. */
  private wakeAt(ms: number): void {
    if (this.closed) return;
    const at = Date.now() + ms;
    if (this.timer && this.due <= at) return;
    if (this.timer) clearTimeout(this.timer);
    this.due = at;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.due = Infinity;
      void this.deliver();
    }, ms);
    this.timer.unref();
  }

  private deliver(): Promise<void> {
    this.sending ??= this.deliverParts().finally(() => {
      this.sending = undefined;
    });
    return this.sending;
  }

  private async deliverParts(): Promise<void> {
    let wait: number | undefined = 0;
    try {
      for (let rounds = 0; wait === 0 && !this.closed && rounds < 10_000; rounds++) {
        wait = await this.deliverOnce();
        this.notify();
      }
    } catch (error) {
      // Of the spool's folder; what it holds stays there.
      this.lastProblem = messageOf(error);
      this._say('spool', `delivering failed: ${this.lastProblem}`);
      wait = SYNC_EVERY_MS;
    }
    this.notify();
    this.wakeAt(
      Math.min(wait ?? ADOPT_EVERY_MS, this.spool.needsSync ? SYNC_EVERY_MS : ADOPT_EVERY_MS),
    );
  }

  /** One batch of each part. undefined: there is nothing to send; else how long to wait. */
  private async deliverOnce(): Promise<number | undefined> {
    const now = Date.now();
    if (now >= this.nextSync) {
      this.nextSync = now + SYNC_EVERY_MS;
      await this.spool.sync();
    }
    if (now >= this.nextAdopt) {
      this.nextAdopt = now + ADOPT_EVERY_MS;
      await this.spool.adopt();
    }
    if (this.retryAt > now) return this.retryAt - now;
    let wait: number | undefined;
    for (const part of [...this.spool.parts()]) {
      if (part.empty || this.closed) continue;
      const held = (this.notBefore.get(part.name) ?? 0) - Date.now();
      const delay = held > 0 ? held : await this.sendBatch(part);
      wait = Math.min(wait ?? Infinity, delay);
      if (this.retryAt > Date.now()) break;
    }
    if (!this.closed) this.spool.dropDelivered();
    this.sayDamage();
    return wait;
  }

  private sayDamage(): void {
    const found = this.spool.parts().reduce((sum, part) => sum + part.damaged, 0);
    if (found > this.damageSaid) {
      const where = this.spool.folder ?? 'memory';
      this._say(
        'damaged',
        `${found} places of the spool in ${where} are damaged or gone; what stood there is lost`,
      );
    }
    this.damageSaid = found;
  }

  /** Exponential with jitter; at least what the server asked for. */
  private backOff(retryAfter?: string): number {
    this.failures++;
    const most = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** Math.min(this.failures, 12));
    let delay = most / 2 + Math.random() * (most / 2);
    if (this.flushes > 0) delay = Math.min(delay, 500); // someone waits
    const asked = Number(retryAfter) * 1000;
    if (asked > 0) delay = Math.max(delay, Math.min(asked, 300_000));
    this.retryAt = Date.now() + delay;
    this._say(
      'server',
      `cannot deliver now (${this.lastProblem}); steps wait in ${this.spool.folder ?? 'memory'}`,
    );
    return delay;
  }

  private async sendBatch(part: Part): Promise<number> {
    const lines = await part.read(this.limits.get(part.name) ?? BATCH_STEPS, BATCH_BYTES);
    if (lines.length === 0) return 0;
    const body = '{"steps":[' + lines.map((line) => line.data).join(',') + ']}';
    let answer: Answer;
    try {
      answer = await this.connection.ask('POST', '/api/v1/steps', body);
    } catch (error) {
      this.lastProblem = messageOf(error);
      return this.backOff();
    }
    if (this.closed) return 0; // the files are no longer ours
    if (answer.status === 200) {
      const results = answer.json?.results;
      if (Array.isArray(results) && results.length === lines.length) {
        return this.readResults(part, lines, results as Json[]);
      }
      this.lastProblem = `${this.url} does not answer as a Cortex server does`;
      return this.backOff();
    }
    return this.readProblem(part, lines, answer);
  }

  private async readResults(part: Part, lines: Line[], results: Json[]): Promise<number> {
    this.failures = 0;
    for (const [at, line] of lines.entries()) {
      const result = results[at]!;
      const status = String(result.status);
      if (status === 'stored' || status === 'duplicate') {
        this.delivered(part, line, result);
        continue;
      }
      if (status === 'skipped') return 0; // its turn comes when the one before it was decided
      const outcome = {status, reason: String(result.reason), detail: String(result.detail)};
      return this.decideStep(part, line, outcome);
    }
    return 0;
  }

  private delivered(part: Part, line: Line, result: Json): void {
    this.clearHold(part);
    part.ack(line.place);
    if (!part.own) return;
    this.counts.delivered++;
    this.ownDone++;
    if (result.agent === this.agent) this.newest = result;
  }

  private clearHold(part: Part): void {
    this.heldSince.delete(part.name);
    this.limits.delete(part.name);
    this.notBefore.delete(part.name);
  }

  private async readProblem(part: Part, lines: Line[], answer: Answer): Promise<number> {
    const found = answer.json;
    const {status} = answer;
    const errors = found?.errors as Json[] | undefined;
    const pointer = Array.isArray(errors) ? errors[0]?.pointer : undefined;
    this.lastProblem = `${this.url}: ${answer.problem}`;
    const aboutFirst = typeof pointer === 'string' && /^\/steps\/0(\/|$)/.test(pointer);
    if (aboutFirst && [403, 409, 422].includes(status)) {
      this.failures = 0;
      return this.decideStep(part, lines[0]!, outcomeOf(answer, lines[0]!));
    }
    if (status === 401 || status === 403) {
      const where = this.spool.folder ?? 'memory';
      this._say(
        'token',
        `${this.lastProblem}; check CORTEX_TOKEN (scope trace:write); steps wait in ${where}`,
      );
      return this.backOff();
    }
    const ours = String(found?.type ?? '').startsWith('urn:cortex:problem:');
    if (ours && [400, 413, 422].includes(status)) {
      // Else it is not Cortex that answers.
      if (lines.length > 1) {
        this.limits.set(part.name, Math.max(1, lines.length >> 1)); // to find the one
        return 0;
      }
      this.rejectStep(part, lines[0]!, {
        status: 'rejected',
        reason: `HTTP ${status}`,
        detail: answer.problem,
      });
      return 0;
    }
    return this.backOff(answer.headers['retry-after']);
  }

  // --- a step that was not taken ---

  /** Waits, sends it otherwise, or gives it up, in this order. */
  private async decideStep(part: Part, line: Line, outcome: Outcome): Promise<number> {
    const {reason, detail} = outcome;
    const since = this.heldSince.get(part.name) ?? Date.now();
    this.heldSince.set(part.name, since);
    const waited = Date.now() - since;
    if (reason === 'BadSignature' && !detail.includes('it is not of this step')) {
      this.lastProblem = detail;
      if (await this.askForKey()) return 0;
      this._say('key', `${detail}; steps wait in ${this.spool.folder ?? 'memory'}`);
      return this.hold(part, Math.min(BACKOFF_MAX_MS, Math.max(500, waited / 2)));
    }
    const step = stepOf(line);
    const linked = step !== undefined && ('parents' in step || 'head' in step);
    if (reason === 'KeyReused' && linked) {
      // Recorded without its parents, by a process that ended before it read the answer.
      this.delivered(part, line, {});
      return 0;
    }
    if (linked && ['NoParent', 'NotTheHead', 'HeadMoved', 'Ambiguous'].includes(reason)) {
      if (reason === 'NoParent' && waited < PARENT_WAIT_MS) {
        this.lastProblem = detail;
        return this.hold(part, Math.max(100, waited / 4));
      }
      if (this.unlinkStep(part, line, step, detail)) return 0;
    }
    this.rejectStep(part, line, outcome);
    return 0;
  }

  private hold(part: Part, delay: number): number {
    this.notBefore.set(part.name, Date.now() + delay);
    return delay;
  }

  /**
   * The step without its parents, which it names in its event: better than no step. What another key
   * signed cannot be changed.
   */
  private unlinkStep(part: Part, line: Line, step: Json, detail: string): boolean {
    const signed = step.signature as {key_id?: unknown} | undefined;
    const key = this.signingKey;
    if (signed && (!key || signed.key_id !== key.keyId)) return false;
    const {parents, signature: _, head: _head, fork: _fork, fork_type: _type, ...kept} = step;
    kept.event = {
      ...(kept.event as Json | undefined),
      unresolved_parents: parents ?? null,
      unresolved_reason: detail,
    };
    if (signed && key) kept.signature = key.signatureOf(toSign(kept));
    part.replace(line.place, canonical(kept));
    this._say('parents', `a step is recorded without its parents: ${detail}`);
    return true;
  }

  private rejectStep(part: Part, line: Line, outcome: Outcome): void {
    const kept = this.spool.reject(
      line.data,
      canonical({detail: outcome.detail, reason: outcome.reason}),
    );
    this.clearHold(part);
    part.ack(line.place);
    this.counts.rejected++;
    if (part.own) this.ownDone++;
    const where = kept ? `kept in ${this.spool.folder}/rejected.jsonl` : 'not kept';
    try {
      this.log.error(
        `cortex: agent ${this.agent}: the server does not take a step ` +
          `(${outcome.reason}: ${outcome.detail}); it is ${where}`,
      );
    } catch {
      // A log that fails does not stop the program.
    }
  }

  // --- the key ---

  /**
   * After a signature was refused: registers the public key, at once with a token that may, else where
   * the server lets keys wait for approval (`cortex serve --open-signed`). Whether to try again now.
   */
  private async askForKey(): Promise<boolean> {
    const key = this.signingKey;
    if (!key || !this.register || Date.now() - this.keyAsked < KEY_EVERY_MS) return false;
    this.keyAsked = Date.now();
    const body: Json = {
      key_id: key.keyId,
      public_key_base64: key.publicKeyBase64,
      algorithm: 'ed25519',
      description: `cortex-recorder, agent ${this.agent}`.slice(0, 200),
    };
    const where = '/api/v1/covenant/public-keys';
    let answer: Answer;
    try {
      answer = await this.connection.ask('POST', where, canonical({...body, agents: [key.agent]}));
      if (answer.status === 401 || answer.status === 403) {
        answer = await this.connection.ask('POST', where, canonical(body), false);
      }
    } catch (error) {
      this.lastProblem = messageOf(error);
      return false;
    }
    if (answer.status === 201) return true;
    if (answer.status === 200 && answer.json?.status === 'pending') {
      this._say('pending', `key ${key.keyId} waits for approval: cortex key approve ${key.keyId}`);
    } else if (answer.status === 401) {
      this._say(
        'register',
        'this token may not register keys; on the server: ' +
          `cortex key add --id ${key.keyId} --public-key ${key.publicKeyBase64} --agent ${key.agent}`,
      );
    } else if (answer.status !== 200) {
      this._say('register', `key ${key.keyId} was not registered: ${answer.problem}`);
    }
    return false;
  }

  // --- flush ---

  /**
   * Waits until everything that was recorded before this call is durable on the server, and returns a
   * receipt. Throws NotDelivered when that takes longer; the steps stay in the spool.
   */
  async flush(timeoutMs = FLUSH_MS): Promise<Receipt> {
    checkTimeout('flush', timeoutMs);
    return keepAlive(async () => {
      await this._drain(timeoutMs);
      return this.receipt();
    });
  }

  /** @internal */
  async _drain(timeoutMs: number): Promise<void> {
    const end = Date.now() + timeoutMs;
    const target = this.spool.appended;
    this.flushes++;
    if (this.failures > 0) this.retryAt = Math.min(this.retryAt, Date.now());
    try {
      await keepAlive(async () => {
        while (this._left(target) > 0) {
          const left = end - Date.now();
          if (left <= 0) throw this.notDelivered(timeoutMs, this._left(target));
          this.wakeAt(0);
          await this.changed(Math.min(left, 50));
        }
      });
    } finally {
      this.flushes--;
    }
  }

  private notDelivered(timeoutMs: number, count: number): NotDelivered {
    const [are, wait] = count === 1 ? ['step is', 'waits'] : ['steps are', 'wait'];
    const why = this.lastProblem ? `: ${this.lastProblem}` : '';
    return new NotDelivered(
      `${count} ${are} not delivered after ${timeoutMs} ms, and ${wait} in ${this.spool.folder ?? 'memory'}${why}`,
      count,
    );
  }

  private changed(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private notify(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const wake of waiting) wake();
  }

  /** How many own steps are not delivered, of the first `target`. @internal */
  _left(target = this.spool.appended): number {
    if (this.spool.parts().every((part) => !part.own || part.empty)) return 0;
    return Math.max(0, target - this.ownDone);
  }

  /** Whether adopted parts wait, too. @internal */
  _allDelivered(): boolean {
    return this.nextAdopt > 0 && this.spool.parts().every((part) => part.empty);
  }

  /** @internal */
  _problem(): string {
    return this.lastProblem || 'no answer yet';
  }

  private async receipt(): Promise<Receipt> {
    const {agent, newest} = this;
    const {delivered, rejected, dropped} = this.counts;
    const base = {agent, delivered, rejected, dropped};
    if (!newest) return new Receipt({...base, unproven: 'no step of this process was delivered'});
    const entry = Number(newest.entry);
    const known = {...base, hash: String(newest.hash), seq: Number(newest.seq), entry};
    try {
      const {found, checkpoint} = await this.prove(entry);
      return new Receipt({
        ...known,
        root: String(found.journal_root),
        size: Number(found.journal_size),
        leaf: String(found.leaf_hash),
        proof: new Uint8Array(Buffer.from(String(found.proof), 'base64')),
        ...(checkpoint === undefined ? {} : {checkpoint}),
      });
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      return new Receipt({...known, unproven: error.message});
    }
  }

  /** The entry's inclusion in the journal of a signed checkpoint, or else of now. */
  private async prove(entry: number): Promise<{found: Json; checkpoint?: string}> {
    const where = {actor: journalOf(this.agent), seq: String(entry)};
    const newest = await this.get('/api/v1/proofs/entry', where);
    let notes: Json[] = [];
    try {
      const {items} = await this.get('/api/v1/checkpoints', {});
      notes = Array.isArray(items) ? (items as Json[]) : [];
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
    }
    const usable = notes
      .filter(
        (note) => entry < Number(note.size) && Number(note.size) <= Number(newest.journal_size),
      )
      .sort((a, b) => Number(b.size) - Number(a.size));
    for (const note of usable.slice(0, 8)) {
      const found = await this.get('/api/v1/proofs/entry', {...where, size: String(note.size)});
      if (found.journal_root === note.root) return {found, checkpoint: String(note.note)};
    }
    return {found: newest};
  }

  // --- questions ---

  private async get(where: string, query: Record<string, string>): Promise<Json> {
    const words = new URLSearchParams(query).toString();
    const answer = await this.questions.ask('GET', where + (words ? '?' + words : ''));
    const found = answer.json;
    if (answer.status !== 200 || !found)
      throw new ServerError(`${where}: ${answer.problem}`, answer.status);
    return found;
  }

  private branch(question: string): string {
    const place = `agent/${journalOf(this.agent)}`.split('/').map(encodeURIComponent).join('/');
    return `/api/v1/lattice/${place}/${question}`;
  }

  /**
   * Every change that led to the value of a key (`memory/limit`), newest first, with the events of the
   * newest `events`. Delivers what is in the spool first.
   */
  async why(key: string, events = 20): Promise<Change[]> {
    const asked = questionKey(key);
    return keepAlive(async () => {
      await this._drain(FLUSH_MS);
      const found = await this.get(this.branch('why'), {
        node: '@' + this.agent,
        key: asked,
      });
      const made: Change[] = [];
      for (const change of found.changes as Json[]) {
        const {agent, seq, node, old} = change;
        let event: Json = {};
        if (made.length < events) {
          const shown = await this.get(this.branch('show'), {node: String(node)});
          event = ((shown.node as Json).event as Json | undefined) ?? {};
        }
        made.push(
          new Change(
            String(agent),
            Number(seq),
            String(node),
            String(found.key),
            old,
            change.new,
            event,
          ),
        );
      }
      return made;
    });
  }

  /** The agent's state: memory, beliefs, goals, context_stack. */
  async state(): Promise<Json> {
    return keepAlive(async () => {
      await this._drain(FLUSH_MS);
      const found = await this.get(this.branch('state'), {node: '@' + this.agent});
      return found.state as Json;
    });
  }

  // --- ends ---

  /**
   * Delivers what there is time for. What remains is delivered by the next process of this agent on
   * this machine.
   */
  async close(timeoutMs = this.exitTimeoutMs): Promise<void> {
    checkTimeout('close', timeoutMs);
    if (this.closed) return;
    await this._drainQuietly(timeoutMs);
    this._closeNow();
  }

  /** @internal */
  async _drainQuietly(timeoutMs = this.exitTimeoutMs): Promise<void> {
    try {
      await this._drain(timeoutMs);
    } catch (error) {
      const then = this.spool.folder
        ? 'the next start of this agent delivers what waits'
        : 'what waits in memory is lost when the process ends';
      this._warn(`${messageOf(error)}; ${then}`);
    }
  }

  /** Without waiting: the files stay for the next process, or are removed when all was delivered. @internal */
  _closeNow(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.timer) clearTimeout(this.timer);
    this.timer = undefined;
    removeClient(this);
    this.spool.close();
    this.connection.close();
    this.questions.close();
    this.notify();
  }
}

/** The process lives until the promise ends; sockets and timers of this package do not hold it. */
export async function keepAlive<T>(wait: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 1 << 30);
  try {
    return await wait();
  } finally {
    clearInterval(timer);
  }
}

function stepOf(line: Line): Json | undefined {
  try {
    const found: unknown = JSON.parse(line.data);
    return typeof found === 'object' && found !== null ? (found as Json) : undefined;
  } catch {
    return undefined;
  }
}

/** A problem about one step says its reason in words; these are told apart by what can be. */
function outcomeOf(answer: Answer, line: Line): Outcome {
  const detail = answer.problem;
  if (answer.status === 409) {
    const reused = String(answer.json?.type ?? '').endsWith(':key-conflict');
    return {status: 'conflict', reason: reused ? 'KeyReused' : 'NotTheHead', detail};
  }
  if (answer.status === 403) return {status: 'rejected', reason: 'BadSignature', detail};
  const aboutParent =
    line.data.includes('"parents"') &&
    detail.startsWith('parent') &&
    !detail.startsWith('parents:');
  return {status: 'rejected', reason: aboutParent ? 'NoParent' : 'BadStep', detail};
}

/** `memory/limit` as the server asks for it; a key without '/' goes as it is. */
export function questionKey(key: string): string {
  if (typeof key !== 'string' || key === '') {
    throw new UsageError(`why: found ${shownAs(key)}, expected a key such as memory/NAME`);
  }
  if (!key.includes('/')) return key;
  const names = key.replace(/^\/+|\/+$/g, '').split('/');
  if (names[0] !== 'memory' && names[0] !== 'beliefs') names.unshift('memory');
  return '/' + names.map((name) => name.replace(/~/g, '~0')).join('/');
}

// --- init ---

/** The folder of all spools of this user. */
export function spoolBase(given?: string): string {
  const base = given ?? process.env.CORTEX_SPOOL;
  if (base) return base;
  const state = process.env.XDG_STATE_HOME || path.join(os.homedir(), '.local', 'state');
  return path.join(state, 'cortex', 'spool');
}

/** One folder for each agent and server, so that steps never reach another server. */
export function spoolFolder(url: string, agent: string, base?: string): string {
  const name = agent.replace(/[^A-Za-z0-9._-]/gu, '_').slice(0, 60);
  return path.join(spoolBase(base), `${name}-${digest(`${url} ${agent}`).slice(0, 12)}`);
}

/**
 * The spool; where its folder cannot be written, one in the folder of temporary files; where that
 * cannot either, memory. The last two are said.
 */
export function openSpool(
  url: string,
  agent: string,
  where: string | boolean | undefined,
  limitBytes: number,
  fsync: Fsync,
  log: Log,
): AnySpool {
  if (where === false) return new Queue(Math.min(limitBytes, MEMORY_BYTES));
  const base = typeof where === 'string' ? where : undefined;
  const folder = spoolFolder(url, agent, base);
  let problem: string;
  try {
    return new Spool(folder, limitBytes, fsync);
  } catch (error) {
    problem = messageOf(error);
    if (base !== undefined) throw new UsageError(`spoolDir: cannot write ${folder}: ${problem}`);
  }
  const other = path.join(os.tmpdir(), `cortex-spool-${process.getuid?.() ?? 0}`);
  try {
    const spool = new Spool(spoolFolder(url, agent, other), limitBytes, fsync);
    log.warn(
      `cortex: agent ${agent}: cannot write ${folder} (${problem}): steps wait in ${spool.folder}`,
    );
    return spool;
  } catch (error) {
    log.warn(
      `cortex: agent ${agent}: no folder for a spool (${problem}; ${messageOf(error)}): ` +
        'steps wait in memory, and are lost with the process',
    );
    return new Queue(Math.min(limitBytes, MEMORY_BYTES));
  }
}

/** The argument, $CORTEX_TOKEN, or for a server on this machine the token of its data directory. */
export function findToken(url: string, given: string | undefined): string | undefined {
  const token = given ?? process.env.CORTEX_TOKEN;
  if (token) {
    const word = token.trim();
    if (!/^[!-~]+$/.test(word)) {
      throw new UsageError('token: expected one line of printable characters without spaces');
    }
    return word;
  }
  if (!/^https?:\/\/(127\.0\.0\.1|localhost|\[::1\])(:|\/|$)/.test(url)) return undefined;
  const data = process.env.XDG_DATA_HOME || path.join(os.homedir(), '.local', 'share');
  const home = process.env.CORTEX_HOME || path.join(data, 'cortex');
  try {
    const word = fs.readFileSync(path.join(home, 'token'), 'latin1').trim();
    return /^[!-~]{1,4096}$/.test(word) ? word : undefined;
  } catch {
    return undefined;
  }
}
