// What an agent calls: steps, tools, gates. Where steps go is the business of the subclasses (a spool
// and a server: client.ts; memory: testing.ts).
import {AsyncLocalStorage} from 'node:async_hooks';
import {randomBytes} from 'node:crypto';
import {checkOptions, messageOf, Refused, shownAs, UsageError} from './errors.js';
import type {SigningKey} from './keys.js';
import type {Receipt} from './receipt.js';
import {canonical, cut, digest, errorMembers, type Json, plain, toSign} from './values.js';

export const KINDS = [
  'message',
  'decision',
  'tool_call',
  'tool_result',
  'observation',
  'handoff',
  'memory',
  'error',
  'note',
] as const;
export type Kind = (typeof KINDS)[number];

export const MAX_STEP = 1 << 20; // bytes of one step; what is longer is shortened, and says so
const EXCERPT = 2000; // characters kept of what was seen
const REASON = 400; // of each reason in `because`
const STATE_TEXT = 4096; // characters of a text in a state
const SAID_EVERY_MS = 60_000;
const SHOWN = Symbol.for('nodejs.util.inspect.custom'); // what console.log shows of an object

/** Gets what is about to be recorded; returns what is recorded, or null for nothing. */
export type Redact = (content: {
  event: Json;
  state_delta: Json;
}) => {event?: Json; state_delta?: Json} | null;

/** Where messages of the recorder go; `console` is one. */
export interface Log {
  warn(message: string): void;
  error(message: string): void;
}

/** A step by the key that its sender gave it; another agent's step can follow it. */
export class Ref {
  constructor(
    readonly agent: string,
    readonly key: string,
  ) {}
}

/** What a step saw; give it to `because`. */
export class Source {
  constructor(
    readonly sha256: string,
    readonly name?: string,
    readonly text?: string,
    readonly ref?: Ref,
  ) {}
}

/** What a gate is asked about. */
export interface Call {
  gate: string;
  tool: string;
  arguments: Json;
  call_id: string;
  agent: string;
}

/** true: go on; false or a reason: refused. */
export type Verdict = boolean | string;
export type Gate = (call: Call) => Verdict | Promise<Verdict>;

/** One change that led to a value; `why` has the newest first. */
export class Change {
  constructor(
    readonly agent: string,
    readonly seq: number,
    readonly node: string,
    readonly key: string,
    readonly old: unknown,
    readonly value: unknown,
    readonly event: Json,
  ) {}

  /** The reasons that were given for this change, as text. */
  get because(): string[] {
    const wanted = this.key.replace(/^\//, '').replace(/\//g, '.');
    const reasons = Array.isArray(this.event.reasons) ? (this.event.reasons as unknown[]) : [];
    return reasons
      .filter((reason): reason is Json => typeof reason === 'object' && reason !== null)
      .filter((reason) => isSameKey(reason.key, wanted))
      .map(shownReason);
  }
}

function shownReason(reason: Json): string {
  return String(reason.text ?? reason.name ?? reason.step ?? reason.sha256);
}

function isSameKey(found: unknown, wanted: string): boolean {
  if (typeof found !== 'string') return false;
  const key = found.replace(/\//g, '.');
  const tail = key.slice(key.indexOf('.') + 1);
  return [key, tail].some((one) => one === wanted || one.startsWith(wanted + '.'));
}

/** Counts since init(). Nothing is left out without one of them being raised. */
export class Stats {
  /** Written to the spool. */
  recorded = 0;
  /** Durable on the server, also those that were there already. */
  delivered = 0;
  /** Not recorded: the spool was full, or the disk refused. */
  dropped = 0;
  /** The server does not take them; they are in rejected.jsonl. */
  rejected = 0;
  /** redact() returned null. */
  suppressed = 0;
  /** Longer than 1 MiB. */
  shortened = 0;
  /** Calls of the recorder that failed inside of it. */
  failed = 0;
  /** Lines of the spool with a wrong check sum. */
  damaged = 0;
  /** Ends of segments that a crash cut; their calls had not returned. */
  torn = 0;
  /** In the spool, not delivered. */
  pending = 0;
}

export interface SetOptions {
  /** What the step saw, a text, or a list of both. */
  because?: unknown;
}

export interface StepMembers {
  kind?: Kind;
  text?: string | undefined;
  role?: string | undefined;
  model?: string | undefined;
  [member: string]: unknown;
}

/** One step. `cx.step(name, fn)` records it when `fn` ends; what it throws is the step's error. */
export class Step {
  readonly key: string;
  private readonly event: Json = {kind: 'decision'};
  private readonly delta: Json = {};
  private readonly parents: unknown[] = [];
  private readonly seen: {value: unknown; source: Source}[] = [];
  private readonly reasons: Json[] = [];
  private readonly started = process.hrtime.bigint();
  private readonly outer = currentStep();
  private done = false;

  constructor(
    readonly recorder: Recorder,
    name: string | undefined,
    members: StepMembers,
  ) {
    if (name !== undefined) this.event.name = name;
    this.key = recorder._newKey();
    this.add(members);
  }

  get ref(): Ref {
    return new Ref(this.recorder.agent, this.key);
  }

  /** A step as a value (of a tool's result, say) is its agent and key, without the recorder. */
  toJSON(): Json {
    return {agent: this.recorder.agent, key: this.key};
  }

  /** @internal */
  [SHOWN](): unknown {
    return {step: this.toJSON(), event: this.event, state_delta: this.delta};
  }

  // --- what happened ---

  /** Members of the event: kind, text, role, model, tokens, or the program's own. */
  add(members: StepMembers): this {
    if (typeof members !== 'object' || members === null) {
      throw new UsageError(`add: found ${shownAs(members)}, expected members of the event`);
    }
    for (const [name, value] of Object.entries(members)) {
      if (name.startsWith('__')) {
        throw new UsageError(`event: the name '${name}' begins with __, which is for Cortex's own`);
      }
      if (name === 'kind' && !(KINDS as readonly unknown[]).includes(value)) {
        throw new UsageError(`kind: found '${String(value)}', expected one of ${KINDS.join(', ')}`);
      }
      if (value !== undefined) this.event[name] = value;
    }
    return this;
  }

  say(text: string, role?: string): this {
    return this.add({text, role});
  }

  /**
   * Notes what the step is based on: a text, bytes, a document, or another agent's step (a Ref, which
   * becomes a parent).
   */
  saw(value: unknown, name?: string): Source {
    const source =
      value instanceof Source
        ? value
        : value instanceof Ref
          ? new Source('', name, undefined, value)
          : sourceOf(value, name);
    if (source.ref) this.follow(source.ref);
    this.seen.push({value, source});
    return source;
  }

  /** Parents: steps of other agents, as Ref, hash, AGENT#SEQ or @AGENT. */
  follow(...steps: (Ref | string)[]): this {
    for (const step of steps) {
      if (!(step instanceof Ref) && typeof step !== 'string') {
        throw new UsageError(`follow: found ${shownAs(step)}, expected a Ref, a hash or AGENT#SEQ`);
      }
      this.parents.push(step instanceof Ref ? {agent: step.agent, key: step.key} : step);
    }
    return this;
  }

  // --- what changed ---

  /** `memory/limit`, `beliefs/safe`; a path without a section is in memory. null removes it. */
  set(path: string, value: unknown, options: SetOptions = {}): this {
    checkOptions('set', options, ['because']);
    const [section, names] = splitPath(path);
    let inner = memberObject(this.delta, section);
    for (const name of names.slice(0, -1)) inner = memberObject(inner, name);
    inner[names[names.length - 1]!] = value === undefined ? null : value;
    return this.addReasons([section, ...names].join('.'), options.because);
  }

  forget(path: string, options: SetOptions = {}): this {
    return this.set(path, null, options);
  }

  believe(name: string, value: unknown, options: SetOptions & {confidence?: number} = {}): this {
    checkOptions('believe', options, ['because', 'confidence']);
    const {because, confidence = 1} = options;
    return this.set('beliefs/' + name, {value, confidence}, {because});
  }

  /** All goals; replaces the former ones. */
  goals(goals: unknown[], options: SetOptions = {}): this {
    if (!Array.isArray(goals)) {
      throw new UsageError(`goals: found ${shownAs(goals)}, expected an array of all goals`);
    }
    checkOptions('goals', options, ['because']);
    this.delta.goals = [...goals];
    return this.addReasons('goals', options.because);
  }

  private addReasons(key: string, because: unknown): this {
    if (because === undefined || because === null) return this;
    for (const one of Array.isArray(because) ? (because as unknown[]) : [because]) {
      const source = this.reasonSource(one);
      const reason: Json = {key};
      if (source.ref) reason.step = `${source.ref.agent}/${source.ref.key}`;
      if (source.sha256) reason.sha256 = source.sha256;
      if (source.name) reason.name = source.name;
      if (source.text) reason.text = source.text.slice(0, EXCERPT);
      this.reasons.push(reason);
    }
    return this;
  }

  private reasonSource(value: unknown): Source {
    if (value instanceof Source) return value;
    if (value instanceof Ref) return new Source('', undefined, undefined, value);
    const known = this.seen.find((one) => one.value === value);
    if (known) return known.source;
    if (typeof value === 'string') return new Source('', undefined, value);
    return sourceOf(value);
  }

  // --- the end ---

  /** The error that ended the step. */
  fail(error: unknown): this {
    this.event.error ??= error;
    return this;
  }

  /** Records the step, once. `cx.step` calls it. */
  end(): Ref {
    if (this.done) return this.ref;
    this.done = true;
    const event = this.event;
    if (this.seen.length > 0) event.saw = this.seen.map((one) => seenAsJson(one.source));
    if (this.reasons.length > 0) {
      event.reasons = this.reasons;
      const texts = this.reasons.map((reason) => shownReason(reason).slice(0, REASON));
      event.because ??= [...new Set(texts)].join('; ');
    }
    if (this.outer && this.outer.recorder === this.recorder) event.within ??= this.outer.key;
    event.duration_ns ??= sinceNs(this.started);
    event.text ??= event.name ?? '';
    return this.recorder._recordAs(this.key, event, {
      state_delta: this.delta,
      parents: this.parents,
    });
  }
}

function memberObject(owner: Json, name: string): Json {
  const found = Object.prototype.hasOwnProperty.call(owner, name) ? owner[name] : undefined;
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as Json;
  const made: Json = {};
  owner[name] = made;
  return made;
}

function splitPath(path: string): [string, string[]] {
  if (typeof path !== 'string') {
    throw new UsageError(`path: found ${shownAs(path)}, expected a text such as memory/NAME`);
  }
  const names = path.replace(/^\/+|\/+$/g, '').split('/');
  const section = names[0] === 'memory' || names[0] === 'beliefs' ? names.shift()! : 'memory';
  if (names.length === 0 || names.some((name) => !name || name === '__proto__')) {
    throw new UsageError(`path: found '${path}', expected memory/NAME, beliefs/NAME, or NAME/NAME`);
  }
  return [section, names];
}

function sourceOf(value: unknown, name?: string): Source {
  if (value instanceof Uint8Array) return new Source(digest(value), name);
  let text: string | undefined;
  if (typeof value === 'string') {
    text = value;
  } else if (typeof value === 'object' && value !== null) {
    const document = value as Json;
    for (const member of ['pageContent', 'page_content', 'text', 'content']) {
      if (typeof document[member] === 'string') {
        text = document[member];
        break;
      }
    }
    const about = document.metadata as Json | undefined | null;
    const found = name ?? about?.source ?? about?.title;
    name = found === undefined || found === null ? undefined : String(found);
  }
  text ??= canonical(plain(value));
  return new Source(digest(text), name, text);
}

function seenAsJson(source: Source): Json {
  const seen: Json = {};
  if (source.ref) seen.step = `${source.ref.agent}/${source.ref.key}`;
  if (source.sha256) seen.sha256 = source.sha256;
  if (source.name) seen.name = source.name;
  if (source.text !== undefined) {
    seen.text = source.text.slice(0, EXCERPT);
    if (source.text.length > EXCERPT) seen.characters = source.text.length;
  }
  return seen;
}

export function sinceNs(started: bigint): number {
  return Number(process.hrtime.bigint() - started);
}

const steps = new AsyncLocalStorage<Step>();

/** The step that is open here, also after awaits. */
export function currentStep(): Step | undefined {
  return steps.getStore();
}

const RECORD_OPTIONS = ['state_delta', 'parents', 'agent', 'timestamp'];
const TIMES = 9_000_000_000; // seconds; 2255

export interface RecordOptions {
  state_delta?: Json;
  parents?: unknown[];
  agent?: string;
  /** Seconds since 1970. */
  timestamp?: number;
}

export interface ToolOptions {
  name?: string;
  gate?: string;
}

export interface EndOptions {
  result?: unknown;
  error?: unknown;
  arguments?: unknown;
  duration_ns?: number;
  [member: string]: unknown;
}

interface Gap {
  count: number;
  since: number;
  why: string;
}

// `any`: parameters that a program leaves without a type are its own business, not errors.
type AnyFunction = (...args: any[]) => unknown;

/** No call of it waits for the network but flush, why, state and close. */
export abstract class Recorder {
  protected readonly counts = new Stats();
  private readonly gates = new Map<string, Gate>();
  private readonly said = new Map<string, number>();
  private readonly senderId = randomBytes(12).toString('hex');
  private nextNumber = 1;
  private gap: Gap | undefined;

  constructor(
    readonly agent: string,
    readonly signingKey: SigningKey | undefined,
    private readonly redact: Redact | undefined,
    readonly log: Log,
  ) {
    checkAgent(agent);
  }

  // --- for subclasses ---

  /** Whether the step is kept. `line` is its canonical JSON. */
  protected abstract store(step: Json, line: string): boolean;
  protected abstract whyNot(): string;
  abstract flush(timeoutMs?: number): Promise<Receipt>;
  abstract why(key: string, events?: number): Promise<Change[]>;
  abstract state(): Promise<Json>;
  abstract close(timeoutMs?: number): Promise<void>;

  /** Without gates, files and connections. */
  toJSON(): Json {
    return {agent: this.agent, stats: {...this.stats}};
  }

  /** @internal */
  [SHOWN](): unknown {
    return this.toJSON();
  }

  get stats(): Stats {
    return Object.assign(new Stats(), this.counts);
  }

  /** @internal */
  _newKey(): string {
    return `${this.senderId}-${this.nextNumber++}`;
  }

  // --- steps ---

  /** `cx.step('triage', (s) => ...)`: one step, recorded when the function ends or its promise does. */
  step<T>(name: string, fn: (step: Step) => T, members: StepMembers = {}): T {
    if (typeof fn !== 'function') {
      throw new UsageError(
        `step '${name}': expected a function; beginStep() is for code without one`,
      );
    }
    const step = new Step(this, name, members);
    let result: T;
    try {
      result = steps.run(step, () => fn(step));
    } catch (error) {
      step.fail(error).end();
      throw error;
    }
    if (!isThenable(result)) {
      step.end();
      return result;
    }
    return (result as unknown as Promise<unknown>).then(
      (value) => {
        step.end();
        return value;
      },
      (error: unknown) => {
        step.fail(error).end();
        throw error;
      },
    ) as T;
  }

  /** A step that the program ends itself: `const s = cx.beginStep('x'); ...; s.end()`. */
  beginStep(name?: string, members: StepMembers = {}): Step {
    return new Step(this, name, members);
  }

  message(role: string, text: string, members: StepMembers = {}): Ref {
    return this.record({kind: 'message', role, text, ...members});
  }

  observe(text: string, members: StepMembers = {}): Ref {
    return this.record({kind: 'observation', text, ...members});
  }

  note(text: string, members: StepMembers = {}): Ref {
    return this.record({kind: 'note', text, ...members});
  }

  error(error: unknown, members: StepMembers = {}): Ref {
    return this.record({kind: 'error', text: messageOf(error), error, ...members});
  }

  /** Gives work to another agent, whose first step should follow the Ref: `s.saw(ref)`. */
  handoff(to: string, text = '', members: StepMembers = {}): Ref {
    return this.record({kind: 'handoff', to, text: text || `to ${to}`, ...members});
  }

  /**
   * Records a step that is complete. Returns when it is in the spool; never throws for what the disk,
   * the server or a value does.
   */
  record(event: Json = {}, options: RecordOptions = {}): Ref {
    if (typeof event !== 'object' || event === null || Array.isArray(event)) {
      throw new UsageError(`record: found ${shownAs(event)}, expected an event, an object`);
    }
    checkOptions('record', options, RECORD_OPTIONS);
    checkTimestamp(options.timestamp);
    if (options.parents !== undefined && !Array.isArray(options.parents)) {
      throw new UsageError(`record: parents: found ${shownAs(options.parents)}, expected an array`);
    }
    return this._recordAs(this._newKey(), event, options);
  }

  /** @internal */
  _recordAs(key: string, event: Json, options: RecordOptions): Ref {
    const agent = options.agent ?? this.agent;
    try {
      this.recordStep(agent, key, {...event}, options);
    } catch (error) {
      this.counts.failed++;
      this._say('failed', `a step was not recorded: ${messageOf(error)}`);
    }
    return new Ref(agent, key);
  }

  private recordStep(agent: string, key: string, event: Json, options: RecordOptions): void {
    const outer = currentStep();
    if (outer && outer.recorder === this && outer.key !== key) event.within ??= outer.key;
    if (event.error !== undefined && event.error !== null && typeof event.error !== 'string') {
      Object.assign(event, errorMembers(event.error));
    }
    const step: Json = {
      agent,
      event: plain(event),
      key,
      timestamp: options.timestamp ?? Date.now() / 1000,
    };
    if (options.state_delta && Object.keys(options.state_delta).length > 0) {
      step.state_delta = plain(options.state_delta);
    }
    if (options.parents && options.parents.length > 0) step.parents = options.parents.slice(0, 64);
    if (this.redact && !this.redactStep(step, this.redact)) {
      this.counts.suppressed++;
      return;
    }
    if (this.gap) this.recordGap(this.gap);
    this.finish(step);
  }

  /** Lets the program's callback change event and state_delta; false: not to be recorded. */
  private redactStep(step: Json, redact: Redact): boolean {
    const event = step.event as Json;
    let found: ReturnType<Redact>;
    try {
      found = redact({event, state_delta: (step.state_delta as Json | undefined) ?? {}});
      if (found !== null && typeof found !== 'object') {
        throw new UsageError(`it returned ${typeof found}, expected {event, state_delta} or null`);
      }
      if (isThenable(found)) throw new UsageError('it is asynchronous, expected a plain function');
    } catch (error) {
      this._say(
        'redact',
        `redact() failed (${messageOf(error)}): steps are recorded without their content`,
      );
      const type = error instanceof Error ? error.name : typeof error;
      step.event = {
        kind: typeof event.kind === 'string' ? event.kind : 'note',
        text: `[redact() failed: ${type}]`,
      };
      delete step.state_delta;
      return true;
    }
    if (found === null) return false;
    step.event = plain(found.event ?? {});
    delete step.state_delta;
    if (found.state_delta && Object.keys(found.state_delta).length > 0) {
      step.state_delta = plain(found.state_delta);
    }
    return true;
  }

  private finish(step: Json): void {
    let line = this.sealed(step);
    if (line.length > MAX_STEP) {
      this.counts.shortened++;
      line = this.shortened(step, line.length);
    }
    if (this.store(step, line)) {
      this.counts.recorded++;
      return;
    }
    this.counts.dropped++;
    const why = this.whyNot();
    this.gap = {
      count: (this.gap?.count ?? 0) + 1,
      since: this.gap?.since ?? Date.now() / 1000,
      why,
    };
    this._say('dropped', `${this.counts.dropped} steps were dropped: ${why}`);
  }

  private shortened(step: Json, size: number): string {
    step.event = {...(plain(step.event, 2000) as Json), too_long: size};
    step.state_delta = plain(step.state_delta ?? {}, 2000);
    const line = this.sealed(step);
    if (line.length <= MAX_STEP) return line;
    const {kind, text} = step.event as Json;
    step.event = {kind: kind ?? 'note', too_long: size, text: cut(String(text ?? ''), 2000)};
    step.state_delta = {};
    return this.sealed(step);
  }

  /** The step's line, signed when there is a key of its agent. */
  private sealed(step: Json): string {
    delete step.signature;
    if (this.signingKey && this.signingKey.agent === step.agent) {
      step.signature = this.signingKey.signatureOf(toSign(step));
    }
    return canonical(step);
  }

  /** The first step after a gap says how many are missing, since when, and why. */
  private recordGap(gap: Gap): void {
    this.gap = undefined;
    const note: Json = {
      agent: this.agent,
      key: this._newKey(),
      timestamp: Date.now() / 1000,
      event: {
        kind: 'note',
        dropped: gap.count,
        since: gap.since,
        text: `${gap.count} steps were not recorded: ${gap.why}`,
      },
    };
    if (!this.store(note, this.sealed(note))) this.gap = gap;
  }

  /** A warning in the log, each cause once a minute. @internal */
  _say(cause: string, message: string): void {
    const now = Date.now();
    const before = this.said.get(cause);
    if (before !== undefined && now - before < SAID_EVERY_MS) return;
    this.said.set(cause, now);
    this._warn(message);
  }

  /** @internal */
  _warn(message: string): void {
    try {
      this.log.warn(`cortex: agent ${this.agent}: ${message}`);
    } catch {
      // A log that fails does not stop the program.
    }
  }

  /** A call that an integration could not read. @internal */
  _failed(error: unknown): void {
    this.counts.failed++;
    this._say('integration', `a call was not recorded: ${messageOf(error)}`);
  }

  // --- gates ---

  /**
   * Registers who decides: `decide(call)` returns true (go on), or false or a reason (refused). One
   * that returns something else, throws, or is not registered refuses.
   */
  gate(name: string, decide: Gate): Gate {
    if (typeof decide !== 'function') throw new UsageError(`gate '${name}': expected a function`);
    this.gates.set(name, decide);
    return decide;
  }

  private async askGate(call: Call): Promise<void> {
    const decide = this.gates.get(call.gate);
    let reason: string | undefined;
    try {
      reason = decide ? refusalOf(await decide(call)) : `no gate '${call.gate}' is registered`;
    } catch (error) {
      reason = error instanceof Refused ? error.reason : `the gate failed: ${messageOf(error)}`;
    }
    const verdict = reason === undefined ? 'allowed' : 'refused';
    this.record({
      kind: 'decision',
      tool: call.tool,
      call_id: call.call_id,
      gate: call.gate,
      verdict,
      text: `gate ${call.gate}: ${verdict}` + (reason === undefined ? '' : `: ${reason}`),
    });
    if (reason === undefined) return;
    this.endCall(call.tool, call.call_id, {
      arguments: call.arguments,
      error: {type: 'Refused', message: reason},
    });
    throw new Refused(call.tool, call.gate, reason);
  }

  // --- tools ---

  /** Records each call of a function before and after it. */
  tool<F extends AnyFunction>(fn: F): F;
  /** With a gate, which may refuse: the function returns a promise. */
  tool<F extends AnyFunction>(
    options: ToolOptions & {gate: string},
    fn: F,
  ): (...args: Parameters<F>) => Promise<Awaited<ReturnType<F>>>;
  tool<F extends AnyFunction>(options: ToolOptions, fn: F): F;
  tool(first: ToolOptions | AnyFunction, second?: AnyFunction): unknown {
    const fn = typeof first === 'function' ? first : second;
    const options = typeof first === 'function' ? {} : first;
    checkOptions('tool', options, ['name', 'gate']);
    if (typeof fn !== 'function') throw new UsageError('tool: expected a function');
    const name = options.name ?? (fn.name || 'tool');
    const {gate} = options;
    const recorder = this;
    if (gate === undefined) {
      return function tool(this: unknown, ...args: never[]): unknown {
        const call = recorder.openCall(name, args);
        return call.around(() => fn.apply(this, args));
      };
    }
    return async function tool(this: unknown, ...args: never[]): Promise<unknown> {
      const call = recorder.openCall(name, args, gate);
      await recorder.askGate({
        gate,
        tool: name,
        arguments: call.arguments,
        call_id: call.callId,
        agent: recorder.agent,
      });
      return call.around(() => fn.apply(this, args));
    };
  }

  private openCall(tool: string, args: unknown[], gate?: string): OpenCall {
    const call = new OpenCall(this, tool, plain(namedArguments(args)) as Json);
    this.beginCall(tool, call.callId, call.arguments, gate === undefined ? {} : {gate});
    return call;
  }

  /** A tool is about to be called; for code that `tool` cannot wrap. */
  beginCall(tool: string, callId: string, args?: unknown, members: StepMembers = {}): Ref {
    return this.record(
      {kind: 'tool_call', tool, call_id: callId, arguments: args, ...members},
      {state_delta: lastCall(tool, callId, args, 'open')},
    );
  }

  endCall(tool: string, callId: string, options: EndOptions = {}): Ref {
    const {result, error, arguments: args, duration_ns, ...members} = options;
    const failed = error !== undefined && error !== null;
    const status = failed ? 'error' : 'ok';
    const event: Json = {kind: 'tool_result', tool, call_id: callId, status, ...members};
    if (duration_ns !== undefined) event.duration_ns = duration_ns;
    if (failed) event.error = error;
    else event.result = result;
    return this.record(event, {
      state_delta: lastCall(tool, callId, args, status, failed ? undefined : result),
    });
  }
}

/** A call that was recorded and has not ended. */
class OpenCall {
  readonly callId: string;
  private started = process.hrtime.bigint();

  constructor(
    private readonly recorder: Recorder,
    private readonly tool: string,
    readonly arguments_: Json,
  ) {
    this.callId = recorder._newKey();
  }

  get arguments(): Json {
    return this.arguments_;
  }

  around(fn: () => unknown): unknown {
    this.started = process.hrtime.bigint();
    let result: unknown;
    try {
      result = fn();
    } catch (error) {
      this.end({error});
      throw error;
    }
    if (!isThenable(result)) {
      this.end({result});
      return result;
    }
    return (result as Promise<unknown>).then(
      (value) => {
        this.end({result: value});
        return value;
      },
      (error: unknown) => {
        this.end({error: error ?? 'rejected without a reason'});
        throw error;
      },
    );
  }

  private end(outcome: EndOptions): void {
    this.recorder.endCall(this.tool, this.callId, {
      ...outcome,
      arguments: this.arguments_,
      duration_ns: sinceNs(this.started),
    });
  }
}

export function isThenable(value: unknown): value is Promise<unknown> {
  return typeof (value as {then?: unknown} | null | undefined)?.then === 'function';
}

function refusalOf(answer: unknown): string | undefined {
  if (answer === true) return undefined;
  if (answer === false) return 'not allowed';
  if (typeof answer === 'string') return answer || 'not allowed';
  return `the gate returned ${answer === null ? 'null' : typeof answer}, expected true, false or a reason`;
}

/** One object is the arguments by name; else they are numbered. */
function namedArguments(args: unknown[]): unknown {
  const [first] = args;
  if (args.length === 1 && typeof first === 'object' && first !== null && !Array.isArray(first)) {
    const prototype: unknown = Object.getPrototypeOf(first);
    if (prototype === Object.prototype || prototype === null) return first;
  }
  return Object.fromEntries(args.map((value, number) => [String(number), value]));
}

/** `tool.NAME.last` of the state, as imported histories have it (docs/formats/imports.md §1.15). */
function lastCall(
  tool: string,
  callId: string,
  args: unknown,
  status: string,
  result?: unknown,
): Json {
  const last = {
    call: callId,
    arguments: asText(args ?? null),
    status,
    result: result === undefined || result === null ? null : asText(result),
  };
  return {memory: {[`tool.${tool}.last`]: last}};
}

function asText(value: unknown): string {
  return cut(typeof value === 'string' ? value : canonical(plain(value)), STATE_TEXT);
}

/** Date.now() is the mistake: such a step would be refused, and kept aside, by the server only. */
function checkTimestamp(timestamp: unknown): void {
  if (timestamp === undefined) return;
  if (typeof timestamp === 'number' && timestamp >= 0 && timestamp <= TIMES) return;
  throw new UsageError(
    `record: timestamp: found ${shownAs(timestamp)}, expected seconds since 1970 (Date.now() / 1000)`,
  );
}

const OWN_JOURNALS = ['alerts', 'batches', 'otel', 'sessions', 'trust'];

function checkAgent(agent: string): void {
  const size = typeof agent === 'string' ? Buffer.byteLength(agent) : 0;
  if (size < 1 || size > 200) {
    throw new UsageError(
      `agent: found ${JSON.stringify(agent)}, expected a name of 1 to 200 bytes`,
    );
  }
  if (
    /[\u0000-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(
      agent,
    )
  ) {
    throw new UsageError('agent: found a control character or half of a surrogate pair');
  }
  if (OWN_JOURNALS.includes(agent) || /^(run|key|home):/.test(agent)) {
    throw new UsageError(`agent: '${agent}' is a journal of Cortex's own; choose another name`);
  }
}
