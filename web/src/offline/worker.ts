// worker.ts - checks in parallel to the page, so that a large file neither stops it nor cannot be stopped.
// The page's own script is its script: nothing is loaded.

import {checkFile, type Job, type Result, Unusable} from './check';

export type Reply = {result: Result} | {unusable: string} | {failed: string};

async function reply(program: WebAssembly.Module, job: Job): Promise<Reply> {
  try {
    return {result: await checkFile(program, job)};
  } catch (error) {
    return error instanceof Unusable
      ? {unusable: error.message}
      : {failed: (error as Error).message};
  }
}

/** In the worker: the first message is the program, each other one a job. */
export function serve(scope: {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: unknown): void;
}): void {
  let program: Promise<WebAssembly.Module> | null = null;
  scope.onmessage = async (event) => {
    if (!program) {
      program = WebAssembly.compile(event.data as BufferSource);
      return;
    }
    try {
      scope.postMessage(await reply(await program, event.data as Job));
    } catch (error) {
      scope.postMessage({failed: (error as Error).message} satisfies Reply);
    }
  };
}

/** One check at a time; `stop` ends the one that runs, which then rejects. */
export class Checks {
  private worker: Worker | null = null;
  private here: Promise<WebAssembly.Module> | null = null;
  private end: ((reply: Reply) => void) | null = null;

  constructor(
    private readonly program: Uint8Array,
    private readonly script: string | null,
  ) {}

  private start(): Worker | null {
    if (this.worker || this.script === null || this.here) return this.worker;
    try {
      const url = URL.createObjectURL(new Blob([this.script], {type: 'text/javascript'}));
      this.worker = new Worker(url);
      this.worker.onmessage = (event) => this.finish(event.data as Reply);
      this.worker.onerror = () => this.finish({failed: 'the check ended early'});
      this.worker.postMessage(this.program);
    } catch {
      this.worker = null; // A browser without workers here checks in the page itself.
    }
    return this.worker;
  }

  private finish(reply: Reply): void {
    this.end?.(reply);
    this.end = null;
  }

  async run(job: Job): Promise<Reply> {
    const worker = this.start();
    if (!worker) {
      this.here ??= WebAssembly.compile(this.program as BufferSource);
      return reply(await this.here, job);
    }
    return new Promise((done) => {
      this.end = done;
      worker.postMessage(job);
    });
  }

  stop(): void {
    this.worker?.terminate();
    this.worker = null;
    this.finish({failed: 'stopped'});
  }
}
