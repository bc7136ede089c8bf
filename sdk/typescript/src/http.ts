// Requests to the server over one kept connection, which does not keep the process alive.
import * as http from 'node:http';
import * as https from 'node:https';
import {codeOf, messageOf, ServerError, UsageError} from './errors.js';
import type {Json} from './values.js';

const ANSWER_BYTES = 64 << 20;

export class Answer {
  constructor(
    readonly status: number,
    readonly headers: http.IncomingHttpHeaders,
    readonly body: string,
  ) {}

  /** The body, if it is a JSON object. */
  get json(): Json | undefined {
    try {
      const found: unknown = JSON.parse(this.body);
      return typeof found === 'object' && found !== null ? (found as Json) : undefined;
    } catch {
      return undefined;
    }
  }

  get problem(): string {
    const detail = this.json?.detail;
    return typeof detail === 'string' ? detail : `HTTP ${this.status}`;
  }
}

export class Connection {
  readonly secure: boolean;
  readonly here: boolean;
  private readonly base: URL;
  // Not to be seen from outside, also not in what is printed: the token, and sockets that send it.
  readonly #token: string | undefined;
  readonly #agent: http.Agent;

  constructor(
    readonly url: string,
    token: string | undefined,
    private readonly timeoutMs: number,
    ca?: string,
  ) {
    this.#token = token;
    try {
      this.base = new URL(url);
    } catch {
      throw new UsageError(`url: found '${url}', expected http://HOST:PORT or https://HOST`);
    }
    const {protocol, username, password, hostname} = this.base;
    if ((protocol !== 'http:' && protocol !== 'https:') || !hostname) {
      throw new UsageError(`url: found '${url}', expected http://HOST:PORT or https://HOST`);
    }
    if (username || password) {
      throw new UsageError('url: found a name or password in it; the token is given as `token`');
    }
    this.secure = protocol === 'https:';
    this.here = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
    const options = {keepAlive: true, maxSockets: 1};
    this.#agent = this.secure ? new https.Agent({...options, ca}) : new http.Agent(options);
  }

  /**
   * Any answer; an error when there is none. What is sent twice is harmless (steps have keys), so a
   * kept connection that the server closed meanwhile is opened again.
   */
  async ask(method: string, path: string, body?: string, withToken = true): Promise<Answer> {
    try {
      return await this.askOnce(method, path, body, withToken);
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
      return this.askOnce(method, path, body, withToken);
    }
  }

  private askOnce(
    method: string,
    path: string,
    body: string | undefined,
    withToken: boolean,
  ): Promise<Answer> {
    const headers: http.OutgoingHttpHeaders = {Accept: 'application/json'};
    if (body !== undefined) {
      headers['Content-Type'] = 'application/json';
      headers['Content-Length'] = Buffer.byteLength(body);
    }
    if (withToken && this.#token) headers.Authorization = 'Bearer ' + this.#token;
    const send = this.secure ? https.request : http.request;
    return new Promise((resolve, reject) => {
      const request = send(
        {
          agent: this.#agent,
          protocol: this.base.protocol,
          hostname: this.base.hostname.replace(/^\[|\]$/g, ''),
          port: this.base.port || (this.secure ? 443 : 8420),
          path: this.base.pathname.replace(/\/+$/, '') + path,
          method,
          headers,
        },
        (response) => this.readAnswer(response).then(finish(resolve), finish(reject)),
      );
      // Of the whole request: a server that sends a byte now and then does not hold it open.
      const timer = setTimeout(() => {
        request.destroy(new Error(`no answer in ${this.timeoutMs} ms`));
      }, this.timeoutMs);
      timer.unref();
      function finish<T>(done: (value: T) => void): (value: T) => void {
        return (value) => {
          clearTimeout(timer);
          done(value);
        };
      }
      request.on('socket', (socket) => socket.unref());
      request.on('error', (error) => {
        const stale = request.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '');
        finish(reject)(stale ? new Stale() : this.serverError(error));
      });
      request.end(body);
    });
  }

  private serverError(error: unknown): ServerError {
    if (error instanceof ServerError) return error;
    const refused = codeOf(error) === 'ECONNREFUSED';
    const why = refused
      ? "nothing listens there; is 'cortex serve' running?"
      : messageOf(error) || codeOf(error);
    return new ServerError(`${this.url}: ${why}`);
  }

  private readAnswer(response: http.IncomingMessage): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size > ANSWER_BYTES)
          response.destroy(new Error(`the answer is longer than ${ANSWER_BYTES} bytes`));
      });
      response.on('end', () =>
        resolve(
          new Answer(
            response.statusCode ?? 0,
            response.headers,
            Buffer.concat(chunks).toString('utf8'),
          ),
        ),
      );
      response.on('error', (error) => reject(this.serverError(error)));
      response.on('aborted', () =>
        reject(this.serverError(new Error('the connection was closed'))),
      );
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

class Stale extends Error {}
