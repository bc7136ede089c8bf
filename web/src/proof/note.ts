// note.ts - signed notes: a checkpoint says how long a journal was and what its root was (C2SP
// tlog-checkpoint and signed-note; ledger.md §12).

import {ascii, concat, equal, fromBase64} from './bytes';
import {verifyEd25519} from './ed25519';
import {sha256} from './sha256';

export interface Checkpoint {
  origin: string;
  size: number;
  root: Uint8Array;
  /** What signatures are made over. */
  text: string;
  signatures: {name: string; id: Uint8Array; signature: Uint8Array}[];
}

export interface VerifierKey {
  name: string;
  id: Uint8Array;
  key: Uint8Array;
}

export function readCheckpoint(note: string): Checkpoint {
  const split = note.indexOf('\n\n');
  if (split < 0 || !note.endsWith('\n'))
    throw new Error('a note has text, an empty line, and signatures');
  const text = note.slice(0, split + 1);
  const lines = text.split('\n');
  const root = fromBase64(lines[2] ?? '');
  if (lines.length !== 4 || !/^(0|[1-9][0-9]*)$/.test(lines[1]!) || root.length !== 32)
    throw new Error('expected origin, size and root');
  const signatures = note
    .slice(split + 2)
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const match = /^\u2014 (\S+) (\S+)$/.exec(line);
      const raw = match ? fromBase64(match[2]!) : new Uint8Array(0);
      if (!match || raw.length < 5) throw new Error('a line that is not a signature');
      return {name: match[1]!, id: raw.subarray(0, 4), signature: raw.subarray(4)};
    });
  return {origin: lines[0]!, size: Number(lines[1]), root, text, signatures};
}

/** `name+hex(id)+base64(01 ‖ key)`. */
export function readVerifierKey(text: string): VerifierKey {
  const match = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text.trim());
  const raw = match ? fromBase64(match[3]!) : new Uint8Array(0);
  if (!match || raw.length !== 33 || raw[0] !== 1)
    throw new Error('expected NAME+8 hex digits+base64');
  const key = raw.subarray(1);
  const id = sha256(ascii(match[1]!), Uint8Array.of(10, 1), key).subarray(0, 4);
  if (id.some((byte, i) => byte !== parseInt(match[2]!.slice(2 * i, 2 * i + 2), 16)))
    throw new Error('the key id does not match the key');
  return {name: match[1]!, id, key};
}

export type NoteResult = 'signed' | 'forged' | 'unknown';

/** A line of that name and id decides; others say nothing. */
export function checkNote(checkpoint: Checkpoint, key: VerifierKey): NoteResult {
  const lines = checkpoint.signatures.filter(
    (line) => line.name === key.name && equal(line.id, key.id),
  );
  if (lines.length === 0) return 'unknown';
  const message = concat(ascii(checkpoint.text));
  return lines.every((line) => verifyEd25519(key.key, message, line.signature))
    ? 'signed'
    : 'forged';
}
