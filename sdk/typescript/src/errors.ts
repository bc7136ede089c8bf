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

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** The code of an error of the operating system, e.g. ENOENT. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as {code?: unknown} | null)?.code;
  return typeof code === 'string' ? code : undefined;
}
