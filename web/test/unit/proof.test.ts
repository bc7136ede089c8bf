// The page's own verifier against the vectors that the program's verifiers are held to.

import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {ascii, concat, equal, fromBase64, fromHex, toHex} from '../../src/proof/bytes';
import {decode} from '../../src/proof/cbor';
import {verifyEd25519} from '../../src/proof/ed25519';
import {foldConsistency, foldInclusion} from '../../src/proof/journal';
import {readCheckpoint, readVerifierKey} from '../../src/proof/note';
import {schemeNamed} from '../../src/proof/scheme';
import {sha256} from '../../src/proof/sha256';
import {sha512} from '../../src/proof/sha512';
import {checkFile, checkStateProof} from '../../src/proof/check';
import {readStateProof} from '../../src/proof/state';

const VECTORS = new URL('../../../tests/vectors/', import.meta.url);
const read = (name: string) => JSON.parse(readFileSync(new URL(name, VECTORS), 'utf8'));

describe('hashes', () => {
  it('are those of the platform, at every length around a block', () => {
    for (let size = 0; size < 300; size += size < 140 ? 1 : 37) {
      const bytes = Uint8Array.from({length: size}, (_, i) => (i * 7 + size) & 255);
      expect(toHex(sha256(bytes))).toBe(createHash('sha256').update(bytes).digest('hex'));
      expect(toHex(sha512(bytes))).toBe(createHash('sha512').update(bytes).digest('hex'));
    }
  });
});

describe('Ed25519', () => {
  it('accepts and refuses what the vectors say', () => {
    for (const one of read('crypto/ed25519_edges.json'))
      expect(
        verifyEd25519(fromHex(one.key), fromHex(one.message), fromHex(one.signature)),
        one.comment,
      ).toBe(one.good);
  });
});

describe('CBOR', () => {
  it('refuses every second spelling', () => {
    const cases = read('ledger/cbor_strict.json');
    let tried = 0;
    for (const one of cases.reject) {
      tried++;
      expect(() => decode(fromHex(one.cbor)), JSON.stringify(one)).toThrow();
    }
    expect(tried).toBeGreaterThan(10);
    for (const one of cases.accept) expect(() => decode(fromHex(one)), one).not.toThrow();
  });
});

for (const name of ['cortex-1', 'matrix-1'] as const) {
  const scheme = schemeNamed(name)!;
  const tree = read(`ledger/${name}/journal_tree.json`);
  const leaf = (i: number) => sha256(ascii(`matrix-mmr-leaf-${i}`));
  const roots = new Map<number, Uint8Array>(
    tree.roots.map((one: {n: number; root: string}) => [Number(one.n), fromHex(one.root)]),
  );

  describe(`the journal of ${name}`, () => {
    it('follows every path of inclusion, and no other', () => {
      for (const one of tree.inclusion) {
        const index = Number(one.index),
          size = Number(one.size),
          path = one.path.map(fromHex);
        const root = roots.get(size);
        const folded = foldInclusion(scheme, leaf(index), index, size, path);
        if (root) expect(toHex(folded.root)).toBe(toHex(root));
        for (let i = 0; i < path.length; i++) {
          const bent = path.map((hash: Uint8Array, k: number) =>
            k === i ? concat(Uint8Array.of(hash[0]! ^ 1), hash.subarray(1)) : hash,
          );
          expect(
            equal(foldInclusion(scheme, leaf(index), index, size, bent).root, folded.root),
          ).toBe(false);
        }
        if (path.length > 0)
          expect(() => foldInclusion(scheme, leaf(index), index, size, path.slice(1))).toThrow();
        expect(() => foldInclusion(scheme, leaf(index), index, size, [...path, leaf(0)])).toThrow();
      }
    });
    it('follows every path of growth', () => {
      let tried = 0;
      for (const one of tree.consistency) {
        const size1 = Number(one.size1),
          size2 = Number(one.size2);
        const older = roots.get(size1),
          newer = roots.get(size2);
        if (!older || !newer) continue;
        tried++;
        const grown = foldConsistency(scheme, older, size1, size2, one.path.map(fromHex), newer);
        expect(toHex(grown.older)).toBe(toHex(older));
        expect(toHex(grown.newer)).toBe(toHex(newer));
      }
      expect(tried).toBeGreaterThan(3);
    });
  });
}

describe('proofs of state', () => {
  it('give the verdicts of the vectors', () => {
    const {cases} = read('ledger/cortex-1/proof_verdicts.json');
    for (const one of cases) {
      const report = checkStateProof(fromHex(one.proof), fromHex(one.manifest));
      const expected = one.cortex_expects.replace(/^(broken|format error) /, '').replace(/ .*/, '');
      expect(report.verdict === 'broken' ? report.reason : 'holds', one.label).toBe(expected);
    }
  });
});

describe('files of the program', () => {
  const made = JSON.parse(readFileSync(new URL('./proofs.json', import.meta.url), 'utf8'));
  const key = readVerifierKey(made.key);
  const pack = fromBase64(made.pack);

  it('hold by a trusted key, over the seal and the checkpoint', () => {
    const report = checkFile(pack, {keys: [key]});
    expect(report.message).toBe('');
    expect(report.verdict).toBe('holds');
    expect(report.anchors).toEqual(['manifest_signature', 'seal']);
    expect(report.questions.map((one) => [one.uri, one.claim])).toEqual(
      made.uris.map((uri: string) => [uri, 'member']),
    );
    expect(report.chains.length).toBe(4);
  });
  it('hold by nothing when nothing is trusted, and say so', () => {
    const report = checkFile(pack);
    expect([report.verdict, report.reason]).toEqual(['indeterminate', 'NotAnchored']);
  });
  it('prove that something is not there', () => {
    const report = checkFile(fromBase64(made.absent), {keys: [key]});
    expect([report.verdict, report.questions[0]!.claim]).toEqual(['holds', 'absent']);
  });
  it('lead to a root that is given, and to no other', () => {
    const root = fromBase64(made.newer_root),
      entry = fromBase64(made.entry);
    expect(checkFile(entry, {journalRoot: root}).verdict).toBe('holds');
    expect(checkFile(entry, {journalRoot: sha256(root)}).reason).toBe('RootMismatch');
    const older = readCheckpoint(made.checkpoint).root,
      grown = fromBase64(made.grown);
    expect(checkFile(grown, {journalRoot: root, olderRoot: older}).verdict).toBe('holds');
    expect(checkFile(grown, {journalRoot: older, olderRoot: root}).verdict).toBe('broken');
    expect(checkFile(grown).reason).toBe('NoRoot');
  });
  it('never hold as they did with a bit turned over', () => {
    // Some bytes bear nothing (who says to have signed): then one of the two anchors is lost (proof.md).
    for (let i = 0; i < pack.length; i += 5) {
      const bent = pack.slice();
      bent[i]! ^= 1 << (i % 8);
      const report = checkFile(bent, {keys: [key]});
      if (report.verdict === 'holds') {
        expect(report.anchors.length, `byte ${i}`).toBe(1);
        expect(toHex(report.manifest!.overall), `byte ${i}`).toBe(
          toHex(checkFile(pack).manifest!.overall),
        );
      }
    }
  });
  it('are signed notes too', () => {
    const note = ascii(made.checkpoint);
    expect(checkFile(note, {keys: [key]}).anchors).toEqual(['checkpoint']);
    const bent = ascii(made.checkpoint.replace('\n6\n', '\n7\n'));
    expect(checkFile(bent, {keys: [key]}).reason).toBe('SignatureInvalid');
  });
});

/** A manifest that is about this state and nothing else, as the program would write it. */
function manifestOf(memories: Uint8Array): Uint8Array {
  const hash = (bytes: Uint8Array) => concat(Uint8Array.of(0x58, 32), bytes);
  const text = (word: string) => concat(Uint8Array.of(0x60 + word.length), ascii(word));
  const journal = sha256(ascii('')),
    edges = new Uint8Array(32);
  return concat(
    Uint8Array.of(0xaa, 0, 2, 1),
    text('andrew'),
    Uint8Array.of(2, 0, 3, 0, 4),
    hash(journal),
    Uint8Array.of(5, 0xa2),
    text('edges'),
    hash(edges),
    text('memories'),
    hash(memories),
    Uint8Array.of(6),
    hash(sha256(concat(journal, memories, edges))),
    Uint8Array.of(7, 0, 11, 0xa2, 1, 0, 2, 0, 12),
    text('cortex-1'),
  );
}

describe('compact proofs of state', () => {
  const vectors = read('ledger/cortex-1/compact_proofs.json');
  it('lead to the root, with the siblings of each key', () => {
    for (const one of vectors.whole) {
      const report = checkStateProof(fromHex(one.cbor), manifestOf(fromHex(one.root)));
      expect([report.verdict, report.message], one.label).toEqual(['holds', '']);
      expect(report.questions.map((q) => [toHex(q.key), q.claim])).toEqual(
        one.keys.map((key: {key: string; kind: string}) => [key.key, key.kind]),
      );
      readStateProof(decode(fromHex(one.cbor))).keys.forEach((key, i) => {
        expect(key.siblings.length).toBe(one.keys[i].depth);
        expect(toHex(sha256(concat(...key.siblings))), one.label).toBe(one.keys[i].siblings_digest);
      });
    }
  });
  it('are refused for the reason that the program names', () => {
    for (const one of vectors.broken) {
      const bytes = fromHex(one.cbor);
      // The root that the proof tells, so that it is looked at as far as it goes; it may be no CBOR at all.
      let root: Uint8Array = sha256(bytes);
      try {
        root = (decode(bytes) as Map<number, Uint8Array>).get(2)!;
      } catch {
        expect(one.reason).toBe('NonCanonical');
      }
      const report = checkStateProof(bytes, manifestOf(root));
      expect([report.verdict, report.reason], `${one.label}: ${report.message}`).toEqual([
        'broken',
        one.reason,
      ]);
    }
  });
  it('never hold for a key that is there with a bit turned over', () => {
    const one = vectors.whole.find((c: {label: string}) => c.label === 'every leaf asked');
    const bytes = fromHex(one.cbor),
      manifest = manifestOf(fromHex(one.root));
    for (let i = 0; i < bytes.length * 8; i++) {
      const bent = bytes.slice();
      bent[i >> 3]! ^= 1 << (i & 7);
      expect(checkStateProof(bent, manifest).verdict, `bit ${i}`).toBe('broken');
    }
  });
});
