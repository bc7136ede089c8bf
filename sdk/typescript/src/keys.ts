// The agent's signing key (Ed25519), from a file as `cortex key new` writes it, or PKCS #8 in PEM.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import {codeOf, messageOf, UsageError} from './errors.js';
import {journalOf} from './values.js';

const PREFIX = 'PRIVATE+KEY+';
const ALGORITHM = Buffer.from([1]); // Ed25519 in keys of the note format
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A key that signs steps; `keyId` is what the server's trust store calls it. */
export class SigningKey {
  readonly publicKey: Uint8Array;
  readonly keyId: string;
  readonly #key: KeyObject;

  constructor(
    seed: Uint8Array,
    readonly agent: string,
    keyId?: string,
  ) {
    if (seed.length !== 32)
      throw new UsageError(`an Ed25519 key has 32 bytes, found ${seed.length}`);
    this.#key = createPrivateKey({
      key: Buffer.concat([PKCS8, seed]),
      format: 'der',
      type: 'pkcs8',
    });
    this.publicKey = new Uint8Array(
      createPublicKey(this.#key).export({format: 'der', type: 'spki'}).subarray(-32),
    );
    this.keyId = keyId ?? defaultKeyId(agent, this.publicKey);
  }

  /** The public key as `cortex key add --public-key` and the server take it. */
  get publicKeyBase64(): string {
    return Buffer.from(this.publicKey).toString('base64');
  }

  signatureOf(message: string | Uint8Array): {key_id: string; signature: string} {
    const data = typeof message === 'string' ? Buffer.from(message, 'utf8') : message;
    return {key_id: this.keyId, signature: sign(null, data, this.#key).toString('base64')};
  }
}

/** The agent's name and the beginning of the key's hash: no two keys share it by accident. */
export function defaultKeyId(agent: string, publicKey: Uint8Array): string {
  const hash = createHash('sha256').update(publicKey).digest('hex');
  return `${[...agent].slice(0, 80).join('')}-${hash.slice(0, 12)}`;
}

function seedOfNote(text: string, file: string): Uint8Array {
  // PRIVATE+KEY+NAME+ID+BASE64; the last part may contain '+'.
  const found = /^[^+]+\+[0-9a-f]{8}\+([A-Za-z0-9+/]+=*)$/.exec(text.slice(PREFIX.length));
  const data = Buffer.from(found?.[1] ?? '', 'base64');
  if (data.length !== 33 || data[0] !== ALGORITHM[0]) {
    throw new UsageError(`${file}: not an Ed25519 key as 'cortex key new' writes it`);
  }
  return data.subarray(1);
}

function seedOfPem(text: string, file: string): Uint8Array {
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch (error) {
    throw new UsageError(`${file}: cannot read this PEM key: ${messageOf(error)}`);
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new UsageError(
      `${file}: found a key of the kind ${key.asymmetricKeyType}, expected Ed25519`,
    );
  }
  return key.export({format: 'der', type: 'pkcs8'}).subarray(-32);
}

/** Reads a key file: as `cortex key new` and `newKey` write it, or PKCS #8 in PEM. */
export function loadKey(file: string, agent: string, keyId?: string): SigningKey {
  let text: string;
  try {
    if (fs.statSync(file).size > 16384) throw new UsageError(`${file}: too long for a key file`);
    text = fs.readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file}: cannot read the agent's key: ${messageOf(error)}`);
  }
  if (text.startsWith(PREFIX)) return new SigningKey(seedOfNote(text, file), agent, keyId);
  if (text.startsWith('-----BEGIN')) return new SigningKey(seedOfPem(text, file), agent, keyId);
  throw new UsageError(`${file}: expected a key file of 'cortex key new', or PEM (PKCS #8)`);
}

/** Writes a new key to a file that must not exist, readable by its owner only. */
export function newKey(file: string, agent: string): SigningKey {
  if (!agent || /[+ \n\t]/.test(agent))
    throw new UsageError("a key's name has no '+' and no spaces");
  const seed = randomBytes(32);
  const key = new SigningKey(seed, agent);
  const number = createHash('sha256')
    .update(agent + '\n')
    .update(ALGORITHM)
    .update(key.publicKey)
    .digest('hex')
    .slice(0, 8);
  fs.mkdirSync(path.dirname(file), {recursive: true, mode: 0o700});
  let out: number;
  try {
    out = fs.openSync(file, 'wx', 0o600);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw new UsageError(`${file}: ${messageOf(error)}`);
    throw new UsageError(`${file}: exists already; a key is never overwritten`);
  }
  try {
    const secret = Buffer.concat([ALGORITHM, seed]).toString('base64');
    fs.writeSync(out, `${PREFIX}${agent}+${number}+${secret}\n`);
    fs.fsyncSync(out);
  } finally {
    fs.closeSync(out);
  }
  return key;
}

export function defaultKeyPath(agent: string): string {
  const base = process.env.XDG_CONFIG_HOME || path.join(os.homedir(), '.config');
  return path.join(base, 'cortex', 'keys', journalOf(agent) + '.key');
}

/**
 * The key that `init` means. undefined: $CORTEX_KEY, or the default place, if there is one; false:
 * none; true: there must be one.
 */
export function findKey(
  given: string | boolean | SigningKey | undefined,
  agent: string,
  keyId?: string,
): SigningKey | undefined {
  if (given === false) return undefined;
  if (given instanceof SigningKey) return given;
  if (typeof given === 'string') return loadKey(given, agent, keyId);
  const named = process.env.CORTEX_KEY;
  if (named) return loadKey(named, agent, keyId);
  const place = defaultKeyPath(agent);
  if (fs.existsSync(place)) return loadKey(place, agent, keyId);
  if (given === true) {
    throw new UsageError(
      `there is no key: neither $CORTEX_KEY nor ${place}; 'cortex-recorder keygen ${agent}' makes one`,
    );
  }
  return undefined;
}
