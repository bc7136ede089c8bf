// check.ts - cortex-verify's checks in the page: recognises a proof, recomputes every hash of it,
// and states what that proves and what it does not. Reasons have the names of the program
// (proof.md).

import {ascii, concat, equal, toHex} from './bytes';
import {
  asBytes,
  asList,
  asMap,
  asNumber,
  asText,
  decode,
  NotCanonical,
  only,
  Wrong,
  type Cbor,
} from './cbor';
import {verifyEd25519} from './ed25519';
import {foldConsistency, foldInclusion, Malformed, type Step} from './journal';
import {
  MANIFEST_DOMAIN,
  manifestDigest,
  namesItsRoot,
  overallOf,
  readManifest,
  type Manifest,
} from './manifest';
import {checkNote, readCheckpoint, type Checkpoint, type VerifierKey} from './note';
import {entryLeafHash, schemeNamed, type Scheme} from './scheme';
import {readUri, unlike} from './uri';
import {foldKey, readStateProof, type KeyProof, type Membership, type StateProof} from './state';

export type Verdict = 'holds' | 'broken' | 'indeterminate';

/** One line of reasoning: from something shown, over hashes, to something that is compared. */
export interface Chain {
  title: string;
  /** What it starts from, in words. */
  from: string;
  start: Uint8Array | null;
  steps: Step[];
  /** What was computed, and what it had to be. */
  computed: Uint8Array;
  expected: Uint8Array | null;
  expectedIs: string;
}

export interface Question {
  uri: string;
  claim: Membership;
  key: Uint8Array;
  record: Uint8Array | null;
}

export interface Report {
  kind: 'pack' | 'multiproof' | 'manifest' | 'inclusion' | 'consistency' | 'checkpoint' | 'unknown';
  verdict: Verdict;
  reason: string | null;
  message: string;
  scheme: string | null;
  chains: Chain[];
  questions: Question[];
  manifest: Manifest | null;
  checkpoint: Checkpoint | null;
  entry: Entry | null;
  /** What the verdict rests on. */
  anchors: string[];
  limits: string[];
}

/** The entry that a proof of the journal shows (ledger.md §3). */
export interface Entry {
  seq: number;
  kind: string;
  createdNs: number;
  createdBy: Uint8Array | null;
  /** In the entry itself, or only its commitment. */
  payload: Uint8Array | null;
  commitment: Uint8Array | null;
  payloadSize: number;
}

/** What the reader brings along; the file itself is believed in nothing. */
export interface Trust {
  overallRoot?: Uint8Array;
  journalRoot?: Uint8Array;
  olderRoot?: Uint8Array;
  keys?: VerifierKey[];
}

export class Broken extends Error {
  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

export function blank(kind: Report['kind']): Report {
  return {
    kind,
    verdict: 'holds',
    reason: null,
    message: '',
    scheme: null,
    chains: [],
    questions: [],
    manifest: null,
    checkpoint: null,
    entry: null,
    anchors: [],
    limits: [],
  };
}

/** Runs a check; what it throws becomes the verdict, and the findings until then are preserved. */
export function reported(report: Report, step: () => void): Report {
  try {
    step();
  } catch (error) {
    report.verdict = 'broken';
    report.anchors = [];
    report.message = (error as Error).message;
    report.reason =
      error instanceof Broken
        ? error.reason
        : error instanceof Malformed
          ? 'ProofMalformed'
          : error instanceof NotCanonical || error instanceof Wrong
            ? 'NonCanonical'
            : 'NotRead';
  }
  return report;
}

// --- state ----------------------------------------------------------------------------------------

function memoryId(key: KeyProof): Uint8Array {
  const map = asMap(decode(key.record!), 'record');
  return asBytes(map.get(1), 'id', 16);
}

/** The key that a record shown belongs to. */
function ownKey(proof: StateProof, key: KeyProof): Uint8Array {
  if (proof.namespace === 'memories') return proof.scheme.memoryKey(memoryId(key));
  const map = asMap(decode(key.record!), 'record');
  return proof.scheme.edgeKey(
    asBytes(map.get(2), 'source', 16),
    asNumber(map.get(1), 'type'),
    asBytes(map.get(3), 'destination', 16),
  );
}

function checkLeaf(proof: StateProof, key: KeyProof): void {
  if (key.record === null) return;
  let own: Uint8Array | null = null;
  try {
    own = ownKey(proof, key);
  } catch {
    own = null;
  }
  if (!own || !equal(own, key.key))
    throw new Broken('LeafMismatch', 'the record that is shown is not the one of its key');
}

const STANDS: Record<Membership, string> = {
  member: 'the record that is shown',
  erased: 'the hash of a record that is withheld or erased',
  absent: 'the empty place of the key',
};

function checkKeys(report: Report, proof: StateProof): void {
  const root = proof.root;
  if (proof.keys.length === 0) throw new Broken('EmptyProof', 'the proof has no subject');
  if (new Set(proof.keys.map((key) => toHex(key.key))).size !== proof.keys.length)
    throw new Broken('DuplicateKey', 'a key occurs twice');
  for (const key of proof.keys) checkLeaf(proof, key);
  for (const key of proof.keys) {
    const folded = foldKey(proof.scheme, key);
    report.chains.push({
      title: `${proof.namespace === 'edges' ? 'Edge' : 'Memory'} ${toHex(key.key).slice(0, 10)}`,
      from: key.other ? 'another record in its place' : STANDS[key.membership],
      start: folded.steps[0] ? folded.steps[0][folded.steps[0].ours] : folded.root,
      steps: folded.steps,
      computed: folded.root,
      expected: root,
      expectedIs: `the root of all ${proof.namespace} in the snapshot`,
    });
    if (!equal(folded.root, root))
      throw new Broken('RootMismatch', 'the path does not lead to the root');
  }
}

function checkRoots(report: Report, proof: StateProof, manifest: Manifest): void {
  const named = overallOf(manifest);
  report.chains.push({
    title: 'Overall root',
    from: 'journal, memories and edges roots of the manifest',
    start: null,
    steps: [],
    computed: named,
    expected: manifest.overall,
    expectedIs: "the manifest's overall root",
  });
  if (!namesItsRoot(manifest))
    throw new Broken(
      'OverallRootMismatch',
      "the manifest's overall root is not the hash of its own roots",
    );
  if (proof.scheme.name !== manifest.scheme.name)
    throw new Broken('SchemeMismatch', 'proof and manifest are of different schemes');
  if (!equal(proof.root, proof.namespace === 'edges' ? manifest.edges : manifest.memories))
    throw new Broken('ManifestRootMismatch', "the proof's root is not the manifest's");
}

/** A proof of state says its scheme before anything else is read of it. */
function schemeOfProof(value: Cbor): void {
  const map = asMap(value, 'proof');
  if ((map.get(0) === 2 || map.get(0) === 3) && map.get(4) !== 'cortex-1')
    throw new Broken('SchemeMismatch', 'the proof names another scheme');
}

export function checkStateProof(proofBytes: Uint8Array, manifestBytes: Uint8Array): Report {
  const report = blank('multiproof');
  return reported(report, () => {
    const value = decode(proofBytes);
    const manifest = readManifest(manifestBytes);
    report.manifest = manifest;
    if (!namesItsRoot(manifest)) checkRoots(report, {} as StateProof, manifest);
    schemeOfProof(value);
    const proof = readAfterRoots(report, value, manifest);
    report.scheme = proof.scheme.name;
    checkKeys(report, proof);
    report.questions = proof.keys.map((key) => ({
      uri: '',
      claim: key.membership,
      key: key.key,
      record: key.record,
    }));
    anchorManifest(report, {});
  });
}

/** Roots are compared before the keys are looked at, so that the first reason is the program's. */
function readAfterRoots(report: Report, value: Cbor, manifest: Manifest): StateProof {
  const map = asMap(value, 'proof');
  const namespace = map.get(1),
    root = map.get(2);
  if (
    (namespace === 'edges' || namespace === 'memories') &&
    root instanceof Uint8Array &&
    root.length === 32
  ) {
    const scheme = schemeNamed(map.get(0) === 1 ? 'matrix-1' : 'cortex-1')!;
    checkRoots(report, {scheme, namespace, root, keys: []}, manifest);
  } else if (typeof namespace === 'string') {
    throw new Broken('NamespaceMismatch', 'the proof is about neither memories nor edges');
  }
  return readStateProof(value);
}

// --- what a manifest rests on ---------------------------------------------------------------------

const LIMITS = {
  state: 'That nothing else was recorded, or that what is recorded is true.',
  journal:
    'That the journal has not been forked: two versions can both verify until their checkpoints are compared.',
  anchor: 'That the file comes from the expected source: no trusted key or root was given.',
  erased: 'The content of a withheld or erased record, or that it was erased.',
};

function anchorManifest(report: Report, trust: Trust): void {
  const manifest = report.manifest!;
  if (trust.overallRoot) {
    if (!equal(trust.overallRoot, manifest.overall))
      throw new Broken('AnchorMismatch', "the root that you trust is not the manifest's");
    report.anchors.push('overall_root');
  }
  for (const key of trust.keys ?? []) {
    if (!manifest.signature || (manifest.signedBy && manifest.signedBy !== key.name)) continue;
    if (!verifyEd25519(key.key, concat(ascii(MANIFEST_DOMAIN), manifest.body), manifest.signature))
      throw new Broken('SignatureInvalid', `the manifest's signature is not ${key.name}'s`);
    report.anchors.push('manifest_signature');
  }
  report.limits.push(LIMITS.state);
}

function conclude(report: Report): void {
  if (report.anchors.length > 0 || report.verdict !== 'holds') return;
  report.verdict = 'indeterminate';
  report.reason = 'NotAnchored';
  report.message =
    'All hashes match, but no trusted key or root was given to compare the root with.';
  report.limits.unshift(LIMITS.anchor);
}

// --- the journal ----------------------------------------------------------------------------------

export interface Inclusion {
  scheme: Scheme;
  size: number;
  index: number;
  path: Uint8Array[];
  entry: Uint8Array | null;
}

export function readScheme(value: Cbor | undefined): Scheme {
  const scheme = schemeNamed(asText(value, 'scheme'));
  if (!scheme) throw new Wrong('scheme: expected cortex-1 or matrix-1');
  return scheme;
}

export function readInclusion(value: Cbor): Inclusion {
  const map = asMap(value, 'inclusion proof');
  only(map, 'inclusion proof', [0, 1, 2, 3, 4, 5]);
  const path = asList(map.get(4), 'path').map((hash) => asBytes(hash, 'path', 32));
  if (map.get(0) !== 1 || path.length > 64) throw new Wrong('inclusion proof: schema or path');
  return {
    scheme: readScheme(map.get(1)),
    size: asNumber(map.get(2), 'size'),
    index: asNumber(map.get(3), 'index'),
    path,
    entry: map.has(5) ? asBytes(map.get(5), 'entry') : null,
  };
}

function readEntry(bytes: Uint8Array): Entry {
  const map = asMap(decode(bytes), 'entry');
  only(map, 'entry', [1, 2, 3, 4, 5, 6, 7]);
  const part = (key: number): Uint8Array | null =>
    map.has(key) ? asBytes(map.get(key), `entry ${key}`) : null;
  const payload = part(5);
  return {
    seq: asNumber(map.get(1), 'seq'),
    kind: asText(map.get(2), 'kind'),
    createdNs: asNumber(map.get(3), 'time'),
    createdBy: part(4),
    payload,
    commitment: part(6),
    payloadSize: payload ? payload.length : map.has(7) ? asNumber(map.get(7), 'size') : 0,
  };
}

export function checkInclusion(
  report: Report,
  proof: Inclusion,
  expected: Uint8Array | null,
  expectedIs: string,
): Uint8Array {
  if (!proof.entry) throw new Broken('NoLeaf', 'the entry is not in the proof');
  const entry = readEntry(proof.entry);
  report.entry = entry;
  if (entry.seq !== proof.index) throw new Broken('LeafMismatch', 'the entry has another number');
  const folded = foldInclusion(
    proof.scheme,
    entryLeafHash(proof.entry),
    proof.index,
    proof.size,
    proof.path,
  );
  report.chains.push({
    title: `Entry ${proof.index} of ${proof.size}`,
    from: 'the entry that is shown',
    start: proof.scheme.entryNode(entryLeafHash(proof.entry)),
    steps: folded.steps,
    computed: folded.root,
    expected,
    expectedIs,
  });
  if (expected && !equal(folded.root, expected))
    throw new Broken('RootMismatch', 'the path leads to another root');
  return folded.root;
}

// --- packs ----------------------------------------------------------------------------------------

const CLAIMS: readonly Membership[] = ['absent', 'member', 'erased'];

function checkQuestions(report: Report, proof: StateProof, questions: readonly Cbor[]): void {
  if (questions.length !== proof.keys.length)
    throw new Broken('QuestionMismatch', 'not one question for each key');
  questions.forEach((value, i) => {
    const map = asMap(value, 'question'),
      key = proof.keys[i]!;
    only(map, 'question', [0, 1]);
    const uri = asText(map.get(0), 'uri'),
      claim = CLAIMS[asNumber(map.get(1), 'claim')];
    const subject = readUri(uri);
    const why = !subject
      ? 'this is not a URI'
      : subject.namespace !== proof.namespace
        ? 'it is about another namespace'
        : !equal(subject.key(proof.scheme), key.key)
          ? 'the proof is about another key'
          : claim === undefined || claim !== key.membership
            ? 'the proof does not show what is claimed'
            : key.record
              ? unlike(subject, key.record)
              : null;
    if (why || !claim) throw new Broken('QuestionMismatch', `${uri}: ${why}`);
    report.questions.push({uri, claim, key: key.key, record: key.record});
    report.chains[report.chains.length - proof.keys.length + i]!.title = uri;
  });
  if (proof.keys.some((key) => key.membership === 'erased')) report.limits.push(LIMITS.erased);
}

/** The entry of kind "seal" names the manifest; its place in the journal is proven by the path. */
function checkSeal(report: Report, inclusionBytes: Uint8Array, trust: Trust): void {
  const manifest = report.manifest!,
    proof = readInclusion(decode(inclusionBytes));
  const checkpoint = report.checkpoint;
  const expected = checkpoint?.root ?? trust.journalRoot ?? null;
  if (checkpoint && checkpoint.size !== proof.size)
    throw new Broken('SizeMismatch', 'the checkpoint is of another size');
  checkInclusion(
    report,
    proof,
    expected,
    checkpoint ? "the checkpoint's root" : 'the journal root you gave',
  );
  const entry = asMap(decode(proof.entry!), 'entry');
  const seal =
    entry.get(2) === 'seal' ? asMap(decode(asBytes(entry.get(5), 'payload')), 'seal') : null;
  if (
    !seal ||
    seal.get(1) !== manifest.snapshot ||
    !equal(asBytes(seal.get(2), 'digest', 32), manifestDigest(manifest)) ||
    !equal(asBytes(seal.get(3), 'overall root', 32), manifest.overall)
  )
    throw new Broken('SealMismatch', 'the entry does not seal this manifest');
  if (
    manifest.signature &&
    (seal.get(4) !== manifest.signedBy ||
      !equal(asBytes(seal.get(5), 'signature'), manifest.signature))
  )
    throw new Broken(
      'SealMismatch',
      'the entry names another signer or signature than the manifest',
    );
  const signed =
    checkpoint && (trust.keys ?? []).some((key) => checkNote(checkpoint, key) === 'signed');
  if (signed || trust.journalRoot) report.anchors.push('seal');
}

function checkPack(report: Report, map: Map<number | string, Cbor>, trust: Trust): void {
  only(map, 'pack', [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  if (map.get(0) !== 1) throw new Wrong('pack: unknown schema');
  if (map.has(6) && map.get(2) !== 'matrix-1') throw new Wrong('pack: the proof contains records');
  const value = decode(asBytes(map.get(3), 'proof'));
  const manifest = readManifest(asBytes(map.get(4), 'manifest'));
  report.manifest = manifest;
  report.scheme = manifest.scheme.name;
  if (map.get(2) !== manifest.scheme.name)
    throw new Broken('SchemeMismatch', 'pack and manifest are of different schemes');
  if (!namesItsRoot(manifest)) checkRoots(report, {} as StateProof, manifest);
  schemeOfProof(value);
  const proof = readAfterRoots(report, value, manifest);
  const records = map.has(6) ? asList(map.get(6), 'records') : [];
  records.forEach((record, i) => {
    const key = proof.keys[i];
    if (!key || record === null) return;
    key.record = asBytes(record, 'record');
    if (!key.valueHash || !equal(proof.scheme.value(key.record), key.valueHash))
      throw new Broken('LeafMismatch', 'the record that is shown is not the one that is proven');
  });
  checkKeys(report, proof);
  checkQuestions(report, proof, asList(map.get(5), 'questions'));
  if (map.has(8)) {
    report.checkpoint = readCheckpoint(new TextDecoder().decode(asBytes(map.get(8), 'checkpoint')));
    if ((trust.keys ?? []).some((key) => checkNote(report.checkpoint!, key) === 'forged'))
      throw new Broken('SignatureInvalid', 'a key that you trust did not make its signature');
  }
  anchorManifest(report, trust);
  if (map.has(7)) checkSeal(report, asBytes(map.get(7), 'inclusion'), trust);
}

// --- any file -------------------------------------------------------------------------------------

function checkConsistency(report: Report, map: Map<number | string, Cbor>, trust: Trust): void {
  only(map, 'consistency proof', [0, 1, 2, 3, 4]);
  const scheme = readScheme(map.get(1));
  report.scheme = scheme.name;
  if (!trust.olderRoot || !trust.journalRoot) {
    report.verdict = 'indeterminate';
    report.reason = 'NoRoot';
    report.message = 'Give the older and the newer journal root.';
    return;
  }
  const size1 = asNumber(map.get(2), 'size'),
    size2 = asNumber(map.get(3), 'size');
  const path = asList(map.get(4), 'path').map((hash) => asBytes(hash, 'path', 32));
  const grown = foldConsistency(scheme, trust.olderRoot, size1, size2, path, trust.journalRoot);
  report.chains.push({
    title: `${size1} of ${size2} entries`,
    from: 'hashes of the older journal',
    start: null,
    steps: grown.steps,
    computed: grown.newer,
    expected: trust.journalRoot,
    expectedIs: 'the newer journal root you gave',
  });
  if (!equal(grown.older, trust.olderRoot) || !equal(grown.newer, trust.journalRoot))
    throw new Broken('RootMismatch', 'the path leads to another root');
  report.anchors.push('journal_root');
  report.limits.push('That what was added is right: only that nothing was taken away or changed.');
}

function checkNoteFile(report: Report, text: string, trust: Trust): void {
  report.checkpoint = readCheckpoint(text);
  const results = (trust.keys ?? []).map((key) => checkNote(report.checkpoint!, key));
  if (results.includes('forged'))
    throw new Broken('SignatureInvalid', 'a key that you trust did not make its signature');
  if (results.includes('signed')) report.anchors.push('checkpoint');
  report.limits.push(LIMITS.journal);
}

/** Checks whatever the bytes are. */
export function checkFile(bytes: Uint8Array, trust: Trust = {}): Report {
  if (bytes.length > 0 && bytes[0]! >= 0x20 && bytes[0]! < 0x7f) {
    const note = blank('checkpoint');
    reported(note, () =>
      checkNoteFile(note, new TextDecoder('utf-8', {fatal: true}).decode(bytes), trust),
    );
    conclude(note);
    return note;
  }
  const report = blank('unknown');
  reported(report, () => {
    const map = asMap(decode(bytes), 'file');
    if (map.get(1) === 'cortex.proof') {
      report.kind = 'pack';
      checkPack(report, map, trust);
    } else if (map.has(12) || map.get(11) instanceof Map) {
      report.kind = 'manifest';
      report.manifest = readManifest(bytes);
      report.scheme = report.manifest.scheme.name;
      checkRoots(
        report,
        {
          scheme: report.manifest.scheme,
          namespace: 'memories',
          root: report.manifest.memories,
          keys: [],
        },
        report.manifest,
      );
      anchorManifest(report, trust);
    } else if (
      Array.isArray(map.get(4)) &&
      typeof map.get(1) === 'string' &&
      typeof map.get(3) === 'number'
    ) {
      // Inclusion has its index in 3, consistency its newer size; an entry or the order of the two tells.
      report.kind =
        map.has(5) || asNumber(map.get(3), 'index') < asNumber(map.get(2), 'size')
          ? 'inclusion'
          : 'consistency';
      if (report.kind === 'consistency') return checkConsistency(report, map, trust);
      const proof = readInclusion(map);
      report.scheme = proof.scheme.name;
      checkInclusion(report, proof, trust.journalRoot ?? null, 'the journal root you gave');
      if (trust.journalRoot) report.anchors.push('journal_root');
      report.limits.push(LIMITS.journal);
    } else {
      throw new Broken('NotRecognised', 'unknown kind of proof; cortex-verify supports more kinds');
    }
  });
  if (report.reason !== 'NoRoot') conclude(report);
  return report;
}
