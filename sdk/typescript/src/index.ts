// Cortex records what an agent does: durable, exactly once, signed if there is a key.
//
//   import * as cortex from '@cortex/recorder';
//
//   const cx = cortex.init({agent: 'refunds'});
//   await cx.step('triage', async (s) => {
//     s.saw(document);
//     s.set('memory/limit', 500, {because: document});
//   });
//   console.log((await cx.flush()).root, await cx.why('memory/limit'));
import {readFileSync} from 'node:fs';
import {Client, findToken, openSpool} from './client.js';
import {checkOptions, messageOf, shownAs, UsageError} from './errors.js';
import {registry} from './exits.js';
import {findKey, type SigningKey} from './keys.js';
import type {Log, Redact} from './recorder.js';
import {checkFsync, type Fsync} from './spool.js';

export interface InitOptions {
  /** Who takes the steps; default $CORTEX_AGENT. */
  agent?: string;
  /** Default $CORTEX_URL, else http://127.0.0.1:8420. */
  url?: string;
  /**
   * Scope trace:write, and trace:read for receipts and questions; default $CORTEX_TOKEN, or for a server
   * on this machine the file `token` of its data directory.
   */
  token?: string;
  /**
   * The file of the agent's key; default $CORTEX_KEY, or ~/.config/cortex/keys/AGENT.key if it is
   * there; true: it must be; false: none.
   */
  keyFile?: string | boolean;
  /** A key that the program has, in place of a file. */
  key?: SigningKey;
  /** What the trust store calls the key; default AGENT-DIGITS. */
  keyId?: string;
  /** Registers the key, or puts it into the queue of keys that wait for approval; default true. */
  register?: boolean;
  /** What is recorded in place of the content, or null for nothing; called before anything is written. */
  redact?: Redact;
  /** Default $CORTEX_SPOOL, else ~/.local/state/cortex/spool; false: memory. */
  spoolDir?: string | boolean;
  /** What may wait, default 256 MiB; after that new steps are dropped, counted and reported. */
  spoolBytes?: number;
  /** 'always': before a call returns; 'interval' (default): once a second; 'never'. */
  fsync?: Fsync;
  /** For one request; default 10,000. */
  timeoutMs?: number;
  /** For delivering when the process ends; default 2,000. */
  exitTimeoutMs?: number;
  /** A file of certificates that the server's is checked with. */
  ca?: string;
  /** Where warnings go; default console. */
  log?: Log;
}

// Another name is an error, above all for what protects: `redakt` would record everything.
const SETTINGS: readonly string[] = [
  'agent',
  'url',
  'token',
  'keyFile',
  'key',
  'keyId',
  'register',
  'redact',
  'spoolDir',
  'spoolBytes',
  'fsync',
  'timeoutMs',
  'exitTimeoutMs',
  'ca',
  'log',
] satisfies (keyof InitOptions)[];

function checkSettings(options: InitOptions): void {
  checkOptions('init', options, SETTINGS);
  for (const name of ['agent', 'url', 'token', 'keyId', 'ca'] as const) {
    const value: unknown = options[name] ?? undefined;
    if (value !== undefined && typeof value !== 'string') {
      throw new UsageError(`${name}: found ${shownAs(value)}, expected a text`);
    }
  }
  const key: {signatureOf?: unknown} | undefined = options.key ?? undefined;
  if (key !== undefined && typeof key.signatureOf !== 'function') {
    throw new UsageError(
      `key: found ${shownAs(key)}, expected a SigningKey; a file is given as keyFile`,
    );
  }
}

/** Starts recording. Nothing here waits for the server. */
export function init(options: InitOptions = {}): Client {
  checkSettings(options);
  const agent = options.agent ?? process.env.CORTEX_AGENT;
  if (agent === undefined) {
    throw new UsageError(
      "agent: not given, and CORTEX_AGENT is not set; expected the agent's name",
    );
  }
  const url = (options.url || process.env.CORTEX_URL || 'http://127.0.0.1:8420').replace(
    /\/+$/,
    '',
  );
  const spoolBytes = number('spoolBytes', options.spoolBytes ?? 256 << 20, 64 << 10, 2 ** 40);
  const timeoutMs = number('timeoutMs', options.timeoutMs ?? 10_000, 1, 2 ** 31 - 1);
  const exitTimeoutMs = number('exitTimeoutMs', options.exitTimeoutMs ?? 2000, 0, 2 ** 31 - 1);
  const fsync = checkFsync(options.fsync ?? 'interval');
  const log = options.log ?? console;
  const key = options.key ?? findKey(options.keyFile, agent, options.keyId);
  const token = findToken(url, options.token);
  const ca = options.ca === undefined ? undefined : readCertificates(options.ca);
  const open = (): ReturnType<typeof openSpool> =>
    openSpool(url, agent, options.spoolDir, spoolBytes, fsync, log);
  const {redact, register = true} = options;
  if (redact !== undefined && typeof redact !== 'function') {
    throw new UsageError(`redact: found ${typeof redact}, expected a function`);
  }
  const client = Client.open({
    agent,
    url,
    token,
    key,
    open,
    redact,
    register,
    timeoutMs,
    exitTimeoutMs,
    ca,
    log,
  });
  registry().current = client;
  return client;
}

function number(name: string, value: number, least: number, most: number): number {
  if (typeof value !== 'number' || !(value >= least && value <= most)) {
    throw new UsageError(
      `${name}: found ${String(value)}, expected a number from ${least} to ${most}`,
    );
  }
  return value;
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`ca: cannot read ${file}: ${messageOf(error)}`);
  }
}

export {Client} from './client.js';
export {CortexError, NotDelivered, Refused, ServerError, UsageError} from './errors.js';
export {type AgentsProcessor, agentsProcessor} from './integrations/agents.js';
export {type AiMiddleware, aiMiddleware} from './integrations/ai.js';
export {watchClaude} from './integrations/claude.js';
export {current} from './integrations/common.js';
export {type LangchainHandler, langchainHandler} from './integrations/langchain.js';
export {instrumentMcp} from './integrations/mcp.js';
export {instrumentAnthropic, instrumentOpenAI} from './integrations/models.js';
export {loadKey, newKey, SigningKey} from './keys.js';
export {Receipt} from './receipt.js';
export {
  type Call,
  Change,
  type EndOptions,
  type Gate,
  KINDS,
  type Kind,
  type Log,
  Recorder,
  type RecordOptions,
  type Redact,
  Ref,
  type SetOptions,
  Source,
  Stats,
  Step,
  type StepMembers,
  type ToolOptions,
  type Verdict,
} from './recorder.js';
export * as testing from './testing.js';
export {canonical, contentDigest, type Json, toSign} from './values.js';
