// manifest.ts - the manifest of a snapshot: which roots it names, and whether they give its overall root
// (ledger.md §9).

import {ascii, equal} from './bytes';
import {asBytes, asMap, asNumber, asText, decode, joinMap, only, splitMap, Wrong} from './cbor';
import {schemeNamed, type Scheme} from './scheme';
import {sha256} from './sha256';

export interface Manifest {
  scheme: Scheme;
  actor: string;
  snapshot: number;
  journalSize: number;
  journalRoot: Uint8Array;
  edges: Uint8Array;
  memories: Uint8Array;
  overall: Uint8Array;
  createdNs: number;
  trigger: string;
  signedBy: string;
  signature: Uint8Array | null;
  /** What its signature is made over. */
  body: Uint8Array;
}

export const MANIFEST_DOMAIN = 'cortex.manifest.v1';

export function readManifest(bytes: Uint8Array): Manifest {
  const map = asMap(decode(bytes), 'manifest');
  only(map, 'manifest', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  const schema = asNumber(map.get(0), 'schema');
  const scheme = schemeNamed(schema === 2 ? 'cortex-1' : schema === 1 ? 'matrix-1' : '');
  if (!scheme || (schema === 2) !== map.has(12) || (schema === 2 && map.get(12) !== 'cortex-1'))
    throw new Wrong('manifest: its schema does not match its scheme');
  const roots = asMap(map.get(5), 'state roots');
  only(roots, 'state roots', ['edges', 'memories']);
  return {
    scheme,
    actor: asText(map.get(1), 'actor'),
    snapshot: asNumber(map.get(2), 'snapshot'),
    journalSize: asNumber(map.get(3), 'journal size'),
    journalRoot: asBytes(map.get(4), 'journal root', 32),
    edges: asBytes(roots.get('edges'), 'edges root', 32),
    memories: asBytes(roots.get('memories'), 'memories root', 32),
    overall: asBytes(map.get(6), 'overall root', 32),
    createdNs: asNumber(map.get(7), 'time'),
    trigger: map.has(8) ? asText(map.get(8), 'trigger') : '',
    signedBy: map.has(9) ? asText(map.get(9), 'signer') : '',
    signature: map.has(10) ? asBytes(map.get(10), 'signature', 64) : null,
    body: joinMap(splitMap(bytes).filter((member) => member.key !== 9 && member.key !== 10)),
  };
}

/** The overall root that follows from the manifest's own parts. */
export function overallOf(manifest: Manifest): Uint8Array {
  return manifest.scheme.overall(manifest.journalRoot, manifest.memories, manifest.edges);
}

export function namesItsRoot(manifest: Manifest): boolean {
  return equal(overallOf(manifest), manifest.overall);
}

export function manifestDigest(manifest: Manifest): Uint8Array {
  return sha256(ascii(MANIFEST_DOMAIN), manifest.body);
}
