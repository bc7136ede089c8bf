// What this package throws. Recording itself never throws because of a server, a disk or a value.

/** Base of all errors of this package. */
export class CortexError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** A call that cannot mean anything; the message says what was expected. */
export class UsageError extends CortexError {}

/** The server refused a question, or could not be asked. */
export class ServerError extends CortexError {
  constructor(
    message: string,
    readonly status?: number,
  ) {
    super(message);
  }
}

/** `flush` ended before everything was delivered. The steps are still in the spool. */
export class NotDelivered extends CortexError {
  constructor(
    message: string,
    readonly pending: number,
  ) {
    super(message);
  }
}

/** A gate did not allow a tool to be called; the tool did not run. */
export class Refused extends CortexError {
  constructor(
    readonly tool: string,
    readonly gate: string,
    readonly reason: string,
  ) {
    super(`${tool}: gate '${gate}' refused the call: ${reason}`);
  }
}

/** What was found in place of what a call expects, for a message. */
export function shownAs(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return `an object (${value.constructor?.name ?? 'no class'})`;
  return typeof value === 'string' ? `'${value}'` : String(value);
}

/** An options object of a call: only these members, so that a name that is mistyped is seen. */
export function checkOptions(call: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new UsageError(`${call}: found ${shownAs(options)}, expected an object of options`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`${call}: no option '${unknown}', expected one of ${known.join(', ')}`);
  }
}

/** Milliseconds that a call may wait; none or fewer: it does not wait. */
export function checkTimeout(call: string, timeoutMs: unknown): void {
  if (typeof timeoutMs === 'number' && !Number.isNaN(timeoutMs)) return;
  throw new UsageError(`${call}: found ${shownAs(timeoutMs)}, expected milliseconds, a number`);
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** The code of an error of the operating system, e.g. ENOENT. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as {code?: unknown} | null)?.code;
  return typeof code === 'string' ? code : undefined;
}
