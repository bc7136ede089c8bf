// An in-memory double for tests of programs that record: no server, no disk, no timer.
//
//   const cx = testing.memory({agent: 'refunds'});
//   await runMyAgent(cx);
//   assert.equal(cx.events('tool_call')[0].tool, 'refund');
//   assert.equal((await cx.why('memory/limit'))[0].value, 500);
import {questionKey} from './client.js';
import {checkOptions, checkTimeout, ServerError} from './errors.js';
import type {SigningKey} from './keys.js';
import {Receipt} from './receipt.js';
import {Change, type Kind, Recorder, type Redact} from './recorder.js';
import {canonical, digest, type Json} from './values.js';

export interface MemoryOptions {
  agent?: string;
  key?: SigningKey;
  redact?: Redact;
  /** The spool refuses everything, to test what a program does then. */
  fail?: boolean;
}

/** Keeps the steps in `steps`, as they would be sent. */
export class Memory extends Recorder {
  readonly steps: Json[] = [];
  fail: boolean;

  constructor(options: MemoryOptions = {}) {
    super(options.agent ?? 'test', options.key, options.redact, {warn() {}, error() {}});
    this.fail = options.fail ?? false;
  }

  protected override store(_step: Json, line: string): boolean {
    if (this.fail) return false;
    this.steps.push(JSON.parse(line) as Json);
    return true;
  }

  protected override whyNot(): string {
    return 'this double was told to fail';
  }

  /** The events of the steps, or of those of a kind. */
  events(kind?: Kind): Json[] {
    const events = this.steps.map((step) => step.event as Json);
    return kind === undefined ? events : events.filter((event) => event.kind === kind);
  }

  clear(): void {
    this.steps.length = 0;
  }

  /** A receipt without a proof; `root` is a hash over the steps, for comparing runs. */
  override async flush(timeoutMs = 0): Promise<Receipt> {
    checkTimeout('flush', timeoutMs);
    const count = this.steps.length;
    return new Receipt({
      agent: this.agent,
      delivered: count,
      rejected: 0,
      dropped: this.counts.dropped,
      root: digest(this.steps.map((step) => canonical(step) + '\n').join('')),
      size: count,
      ...(count > 0 ? {seq: count - 1} : {}),
      unproven: 'nothing was sent: this is a test double',
    });
  }

  override async close(): Promise<void> {}

  // --- questions, over the steps of this agent alone ---

  /** Each step of the agent with the state after it (docs/formats/lattice.md §6). */
  private states(): {step: Json; state: Json}[] {
    let state: Json = {memory: {}, beliefs: {}, goals: [], context_stack: []};
    return this.steps
      .filter((step) => step.agent === this.agent)
      .map((step) => {
        state = {...state};
        for (const [section, delta] of Object.entries(
          (step.state_delta as Json | undefined) ?? {},
        )) {
          state[section] = isObject(delta) ? merged(state[section], delta) : delta;
        }
        return {step, state};
      });
  }

  override async state(): Promise<Json> {
    return this.states().pop()?.state ?? {memory: {}, beliefs: {}, goals: [], context_stack: []};
  }

  override async why(key: string): Promise<Change[]> {
    const asked = questionKey(key);
    const changes: Change[] = [];
    let old: unknown;
    for (const [number, {step, state}] of this.states().entries()) {
      const value = valueOf(state, asked);
      if (!isSame(old, value)) {
        changes.unshift(
          new Change(this.agent, number, String(step.key), asked, old, value, step.event as Json),
        );
      }
      old = value;
    }
    if (changes.length === 0) throw new ServerError(`no step changed '${key}'`, 404);
    return changes;
  }
}

/** A recorder for tests. */
export function memory(options: MemoryOptions = {}): Memory {
  checkOptions('memory', options, ['agent', 'key', 'redact', 'fail']);
  return new Memory(options);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === undefined || b === undefined) return a === b;
  return canonical(a) === canonical(b);
}

/** RFC 7396. */
function merged(old: unknown, delta: Json): Json {
  const made: Json = isObject(old) ? {...old} : {};
  for (const [name, value] of Object.entries(delta)) {
    if (value === null) delete made[name];
    else made[name] = isObject(value) ? merged(made[name], value) : value;
  }
  return made;
}

/** undefined: there is no such value. */
function valueOf(state: Json, key: string): unknown {
  if (!key.startsWith('/')) {
    for (const section of ['memory', 'beliefs']) {
      const found = state[section] as Json;
      if (Object.prototype.hasOwnProperty.call(found, key)) return found[key];
    }
    key = '/' + key.replace(/\./g, '/');
    if (!(key.split('/')[1]! in state)) key = '/memory' + key;
  }
  let found: unknown = state;
  for (const part of key.slice(1).split('/')) {
    const name = part.replace(/~1/g, '/').replace(/~0/g, '~');
    if (!isObject(found) || !Object.prototype.hasOwnProperty.call(found, name)) return undefined;
    found = found[name];
  }
  return found;
}
