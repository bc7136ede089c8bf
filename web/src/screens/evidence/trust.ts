// trust.ts - the user's trust anchors: verifier keys and roots obtained out of band. Stored in this
// browser only.

import {signal} from '@preact/signals';
import {fromBase64, fromHex, toHex} from '../../proof/bytes';
import {readVerifierKey, type VerifierKey} from '../../proof/note';

const KEPT = 'cortex-trusted';
const MOST = 50;

export interface Trusted {
  keys: readonly VerifierKey[];
  /** Hex, of journals or of everything. */
  roots: readonly string[];
  lines: readonly string[];
}

/** A line is a verifier key or a root; throws with what was expected. */
export function readLine(line: string): VerifierKey | string {
  if (line.includes('+') && /^[^\s]+\+[0-9a-f]{8}\+/.test(line)) return readVerifierKey(line);
  if (/^[0-9a-f]{64}$/.test(line)) return toHex(fromHex(line));
  if (/^[A-Za-z0-9+/]{43}=$/.test(line)) return toHex(fromBase64(line));
  throw new Error(
    'Expected a verifier key (name+id+key), or a root: 64 hex digits, or base64 as in a checkpoint.',
  );
}

export function trustOf(lines: readonly string[]): Trusted {
  const keys: VerifierKey[] = [],
    roots: string[] = [],
    good: string[] = [];
  for (const line of lines.slice(0, MOST)) {
    try {
      const read = readLine(line);
      if (typeof read === 'string') roots.push(read);
      else keys.push(read);
      good.push(line);
    } catch {
      // Entries of another version that cannot be read are left out.
    }
  }
  return {keys, roots, lines: good};
}

function kept(): string[] {
  try {
    const lines: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]');
    return Array.isArray(lines)
      ? lines.filter((line): line is string => typeof line === 'string')
      : [];
  } catch {
    return [];
  }
}

export const trusted = signal<Trusted>(trustOf(typeof localStorage === 'undefined' ? [] : kept()));

function keep(lines: readonly string[]): void {
  trusted.value = trustOf(lines);
  try {
    localStorage.setItem(KEPT, JSON.stringify(trusted.value.lines));
  } catch {
    // Without storage it holds until the page is closed.
  }
}

export function addTrusted(text: string): void {
  const line = text.trim();
  readLine(line);
  if (!trusted.value.lines.includes(line)) keep([...trusted.value.lines, line]);
}

export function dropTrusted(line: string): void {
  keep(trusted.value.lines.filter((one) => one !== line));
}
