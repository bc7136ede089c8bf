// options.ts - what the reader trusts and asks, as arguments of cortex-verify (its --help names
// them in the same order).

export interface Given {
  name: string;
  bytes: Uint8Array;
}

export interface Options {
  /** Verifier keys, or 64 hex digits each. */
  keys: readonly string[];
  witnessKeys: readonly string[];
  cosigners: string;
  overallRoot: string;
  root: string;
  size: string;
  checkpoint: Given | null;
  fromRoot: string;
  fromSize: string;
  fromCheckpoint: Given | null;
  manifest: Given | null;
  entry: Given | null;
  leaf: string;
  namespace: '' | 'memories' | 'edges';
  demand: '' | 'members' | 'absent';
  never: string;
  in: string;
  require: 'anchored' | 'signed' | 'self-consistent';
  /** RFC 3339 in UTC, or empty: the clock of this computer. */
  time: string;
}

export const NO_OPTIONS: Options = {
  keys: [],
  witnessKeys: [],
  cosigners: '',
  overallRoot: '',
  root: '',
  size: '',
  checkpoint: null,
  fromRoot: '',
  fromSize: '',
  fromCheckpoint: null,
  manifest: null,
  entry: null,
  leaf: '',
  namespace: '',
  demand: '',
  never: '',
  in: '',
  require: 'anchored',
  time: '',
};

/** The limit of the program for a file (CX_PROOF_BYTES_MAX). */
export const FILE_MAX = 64 << 20;

/** Where option files are, so that a checked file never has the name of one. */
const place = (option: string, file: Given): string => `given/${option}/${file.name}`;

/** Arguments before the file, and the files that they name. */
export function argumentsOf(options: Options): {args: string[]; files: Map<string, Uint8Array>} {
  const args: string[] = [];
  const files = new Map<string, Uint8Array>();
  const text = (option: string, value: string): void => {
    if (value.trim() !== '') args.push(`--${option}=${value.trim()}`);
  };
  const file = (option: string, value: Given | null): void => {
    if (!value) return;
    args.push(`--${option}=${place(option, value)}`);
    files.set(place(option, value), value.bytes);
  };
  for (const key of options.keys) text('key', key);
  for (const key of options.witnessKeys) text('witness-key', key);
  text('cosigners', options.cosigners);
  text('overall-root', options.overallRoot);
  text('root', options.root);
  text('size', options.size);
  file('checkpoint', options.checkpoint);
  text('from-root', options.fromRoot);
  text('from-size', options.fromSize);
  file('from-checkpoint', options.fromCheckpoint);
  file('manifest', options.manifest);
  file('entry', options.entry);
  text('leaf', options.leaf);
  text('namespace', options.namespace);
  if (options.demand) args.push(`--${options.demand}`);
  text('never', options.never);
  text('in', options.in);
  if (options.require === 'signed') args.push('--require=signed');
  if (options.require === 'self-consistent') args.push('--self-consistent');
  return {args, files};
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d))?Z?)?$/;
const NS_MAX = 2n ** 63n - 1n;

/** Nanoseconds since 1970; throws when the text is no time that the program can count to. */
export function timeOf(text: string, nowMs: number): bigint {
  if (text.trim() === '') return BigInt(nowMs) * 1000000n;
  const [, day, minute, second] = TIME.exec(text.trim()) ?? [];
  const exact = `${day}T${minute ?? '00:00'}:${second ?? '00'}`;
  const ms = day ? Date.parse(`${exact}Z`) : Number.NaN;
  const ns = Number.isNaN(ms) || ms < 0 ? -1n : BigInt(ms) * 1000000n;
  // 31 February would be carried over to March.
  if (ns < 0n || ns > NS_MAX || !new Date(ms).toISOString().startsWith(exact))
    throw new Error(
      `time: found '${text}', expected a time in UTC such as 2026-11-28 or 2026-11-28T12:00:00Z, from 1970 to 2262`,
    );
  return ns;
}
