// The page's verifier of evidence files against the files that cortex-verify is held to, as they are and forged.

import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {ascii, concat, fromHex, toHex} from '../../src/proof/bytes';
import {decode, type Cbor} from '../../src/proof/cbor';
import {
  checkEvidence,
  checkEvidenceFile,
  isEvidence,
  readBlock,
  type EvidenceReport,
  type EvidenceTrust,
} from '../../src/proof/evidence';
import {sha1} from '../../src/proof/sha1';

const VECTORS = new URL('../../../tests/vectors/evidence/', import.meta.url);
const read = (name: string): Uint8Array => new Uint8Array(readFileSync(new URL(name, VECTORS)));
const key = fromHex(readFileSync(new URL('key.txt', VECTORS), 'utf8').trim());
const none: EvidenceTrust = {keys: [], roots: []};
/** Under no name of its own: the journals give it theirs. */
const trust: EvidenceTrust = {keys: [{name: 'any', id: new Uint8Array(4), key}], roots: []};

/* --- writing it again, changed ------------------------------------------------------------------ */

function head(major: number, value: number): Uint8Array {
  if (value < 24) return Uint8Array.of((major << 5) | value);
  const width = value < 0x100 ? 1 : value < 0x10000 ? 2 : value < 0x100000000 ? 4 : 8;
  const out = new Uint8Array(1 + width);
  out[0] = (major << 5) | (24 + Math.log2(width));
  const view = new DataView(out.buffer);
  if (width === 1) view.setUint8(1, value);
  else if (width === 2) view.setUint16(1, value);
  else if (width === 4) view.setUint32(1, value);
  else view.setBigUint64(1, BigInt(value));
  return out;
}

function encode(value: Cbor): Uint8Array {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return concat(head(3, ascii(value).length), ascii(value));
  if (value instanceof Uint8Array) return concat(head(2, value.length), value);
  if (Array.isArray(value)) return concat(head(4, value.length), ...value.map(encode));
  if (value instanceof Map)
    return concat(head(5, value.size), ...[...value].flatMap(([k, v]) => [encode(k), encode(v)]));
  return Uint8Array.of(value === null ? 0xf6 : value ? 0xf5 : 0xf4);
}

type Fields = Map<number | string, Cbor>;

function changed(name: string, change: (map: Fields) => void): EvidenceReport {
  const map = decode(readBlock(read(name))) as Fields;
  change(map);
  return checkEvidence(encode(map), trust);
}

const at = (map: Fields, list: number, i: number): Fields => (map.get(list) as Fields[])[i]!;
const flip = (bytes: Cbor | undefined, byte = 0): Uint8Array => {
  const copy = (bytes as Uint8Array).slice();
  copy[byte < 0 ? copy.length + byte : byte]! ^= 1;
  return copy;
};
const reasons = (report: EvidenceReport): string[] => [
  ...new Set(report.findings.map((one) => `${one.part} ${one.reason}`)),
];
const fileAt = (map: Fields, path: string): Fields =>
  (map.get(7) as Fields[]).find((one) => one.get(0) === path)!;

/* --- tests -------------------------------------------------------------------------------------- */

describe('evidence files', () => {
  it('are what cortex-verify says they are', () => {
    const commit = checkEvidenceFile(read('commit.cxe'), trust);
    expect(commit.findings).toEqual([]);
    expect([commit.verdict, commit.evidence!.kind, commit.evidence!.id]).toEqual([
      'holds',
      'commit',
      '10564aa0b6ea95132a44785dd0a477d242419a7c',
    ]);
    expect([
      commit.entries.length,
      commit.evidence!.files.length,
      commit.filesListed,
      commit.evidence!.decisions.length,
    ]).toEqual([40, 34, 33, 1]);
    expect([
      commit.journalsSigned,
      commit.journalsAnchored,
      commit.tracesSigned,
      commit.bodiesMissing,
    ]).toEqual([3, 3, 0, 0]);
    expect(commit.limits[0]).toContain('cortex-verify rebuilds that page');
    expect(checkEvidenceFile(read('trace.cxe'), trust).verdict).toBe('holds');
    const memory = checkEvidenceFile(read('memory.cxe'), trust);
    expect([memory.verdict, memory.proofs.length]).toEqual(['holds', 1]);
    const erased = checkEvidenceFile(read('erased.cxe'), trust);
    expect([erased.verdict, reasons(erased), erased.bodiesMissing]).toEqual([
      'indeterminate',
      ['memory BodyMissing'],
      1,
    ]);
  });

  it('rest on nothing without a key, and on another key not at all', () => {
    const alone = checkEvidenceFile(read('commit.cxe'), none);
    expect([alone.verdict, alone.reason]).toEqual(['indeterminate', 'NotAnchored']);
    const other = checkEvidenceFile(read('commit.cxe'), {
      keys: [{name: 'x', id: new Uint8Array(4), key: flip(key)}],
      roots: [],
    });
    expect([other.verdict, other.reason]).toEqual(['indeterminate', 'NotSigned']);
  });

  it('rest on roots that are trusted', () => {
    const roots = checkEvidenceFile(read('trace.cxe'), none).evidence!.journals.map((one) =>
      toHex(one.root),
    );
    expect(checkEvidenceFile(read('trace.cxe'), {keys: [], roots}).verdict).toBe('holds');
    expect(checkEvidenceFile(read('trace.cxe'), {keys: [], roots: roots.slice(1)}).reason).toBe(
      'NotAnchored',
    );
  });
});

describe('a home root', () => {
  const homeKey = fromHex(readFileSync(new URL('home_key.txt', VECTORS), 'utf8').trim());
  const homeTrust: EvidenceTrust = {
    keys: [{name: 'any', id: new Uint8Array(4), key: homeKey}],
    roots: [],
  };
  const forged = (change: (home: Fields, map: Fields) => void): string | null => {
    const map = decode(readBlock(read('home.cxe'))) as Fields;
    change(at(map, 13, 0), map);
    return checkEvidence(encode(map), homeTrust).reason;
  };

  it('stands for the journal under it', () => {
    const report = checkEvidenceFile(read('home.cxe'), homeTrust);
    expect(report.findings).toEqual([]);
    expect([report.verdict, report.homesSigned, report.journalsSigned]).toEqual(['holds', 1, 1]);
    expect(report.limits.join(' ')).not.toContain('its owner is only');
    expect(checkEvidenceFile(read('home.cxe'), none).reason).toBe('NotAnchored');
    expect(checkEvidenceFile(read('home.cxe'), trust).reason).toBe('NotSigned');
  });

  it('is of that journal', () => {
    for (const field of [2, 3, 4])
      expect(forged((home) => home.set(field, flip(home.get(field))))).toBe('HomeMismatch');
    expect(forged((home) => home.delete(5))).toBe('HomeMismatch');
    expect(forged((_, map) => map.delete(13))).toBe('NotSigned');
    expect(forged((home) => home.set(0, 1))).toBe('NonCanonical');
    expect(forged((_, map) => at(map, 5, 0).set(0, 'bob'))).toBe('HomeMismatch');
  });

  it('holds with no byte changed', () => {
    const {proof, consistency} = checkEvidenceFile(read('home.cxe'), homeTrust).evidence!.homes[0]!;
    for (let i = 0; i < proof.length; i++)
      expect(
        forged((home) => home.set(1, flip(home.get(1), i))),
        `byte ${i}`,
      ).not.toBe(null);
    for (let i = 0; i < consistency!.length; i++)
      expect(
        forged((home) => home.set(5, flip(home.get(5), i))),
        `byte ${i}`,
      ).not.toBe(null);
  });
});

describe('a file that is no evidence file', () => {
  const file = read('trace.cxe');
  const reason = (bytes: Uint8Array): string | null => checkEvidenceFile(bytes, trust).reason;

  it('is refused', () => {
    expect(isEvidence(file)).toBe(true);
    expect(isEvidence(ascii('<html></html>'))).toBe(false);
    expect(reason(file.subarray(0, file.length - 1))).toBe('BadEvidence');
    expect(reason(concat(file, ascii('\n')))).toBe('BadEvidence');
    expect(
      reason(
        ascii(
          new TextDecoder()
            .decode(file)
            .replace('data-cortex-evidence="1"', 'data-cortex-evidence="2"'),
        ),
      ),
    ).toBe('BadEvidence');
    expect(
      reason(
        ascii(new TextDecoder().decode(file).replace('id="evidence">\n', 'id="evidence">\n\n')),
      ),
    ).toBe('PageMismatch');
    expect(
      reason(
        ascii(new TextDecoder().decode(file).replace('id="evidence">\n', 'id="evidence">\n*')),
      ),
    ).toBe('BadEvidence');
    expect(reason(ascii('<!DOCTYPE html>\n<html lang="en" data-cortex-evidence="1">\n'))).toBe(
      'BadEvidence',
    );
  });

  it('says nothing about data that is spelled otherwise', () => {
    const data = readBlock(file);
    for (const bytes of [
      data.subarray(1),
      concat(data, Uint8Array.of(0)),
      new Uint8Array(0),
      Uint8Array.of(0xa0),
    ]) {
      const report = checkEvidence(bytes, trust);
      expect([report.verdict, report.reason]).toEqual(['broken', 'NonCanonical']);
    }
    expect(changed('trace.cxe', (map) => map.set(13, 1)).reason).toBe('NonCanonical');
    expect(changed('trace.cxe', (map) => at(map, 6, 0).set(0, 9)).reason).toBe('NonCanonical');
    expect(changed('trace.cxe', (map) => map.set(10, [])).reason).toBe('NonCanonical');
  });
});

/** What is changed, in which file, and what has to be found. */
const FORGED: [string, string, (map: Fields) => void, string[]][] = [
  [
    'the root of a journal',
    'trace.cxe',
    (map) => at(map, 5, 0).set(3, flip(at(map, 5, 0).get(3))),
    ['journal CheckpointMismatch', 'entry RootMismatch'],
  ],
  [
    'the size of a journal',
    'trace.cxe',
    (map) => at(map, 5, 1).set(2, 4),
    ['journal CheckpointMismatch', 'entry SizeMismatch'],
  ],
  [
    'whose journal it is',
    'trace.cxe',
    (map) => at(map, 5, 1).set(0, 'mallory'),
    ['journal CheckpointMismatch'],
  ],
  [
    'a signature of a checkpoint',
    'trace.cxe',
    (map) => {
      const text = new TextDecoder().decode(at(map, 5, 0).get(4) as Uint8Array);
      const line = /\u2014 \S+ (\S+)\n$/.exec(text)![1]!;
      at(map, 5, 0).set(
        4,
        ascii(
          text.replace(line, line.slice(0, 20) + (line[20] === 'A' ? 'B' : 'A') + line.slice(21)),
        ),
      );
    },
    ['journal SignatureInvalid'],
  ],
  [
    'a checkpoint that is none',
    'trace.cxe',
    (map) => at(map, 5, 0).set(4, ascii('hello')),
    ['journal BadNote'],
  ],
  ['no checkpoint', 'trace.cxe', (map) => at(map, 5, 0).delete(4), ['journal NotSigned']],
  // 20 bytes before its end are in the commitment.
  [
    'an entry',
    'trace.cxe',
    (map) => at(map, 6, 0).set(1, flip(at(map, 6, 0).get(1), -20)),
    ['entry RootMismatch'],
  ],
  [
    'a content',
    'trace.cxe',
    (map) => {
      const entry = (map.get(6) as Fields[]).find((one) => one.has(3))!;
      entry.set(2, flip(entry.get(2), 30));
    },
    ['entry PayloadMismatch'],
  ],
  [
    'a salt',
    'trace.cxe',
    (map) => {
      const entry = (map.get(6) as Fields[]).find((one) => one.has(3))!;
      entry.set(3, flip(entry.get(3)));
    },
    ['entry PayloadMismatch'],
  ],
  [
    'a content left out',
    'trace.cxe',
    (map) => {
      const entry = (map.get(6) as Fields[]).find((one) => one.has(3))!;
      entry.delete(2);
      entry.delete(3);
    },
    ['entry BodyMissing', 'trace TraceMismatch'],
  ],
  [
    'a decision',
    'trace.cxe',
    (map) => at(map, 8, 0).set(1, flip(at(map, 8, 0).get(1), 50)),
    ['trace SignatureInvalid'],
  ],
  [
    'the signature of a decision',
    'trace.cxe',
    (map) => at(map, 8, 0).set(2, flip(at(map, 8, 0).get(2), 5)),
    ['trace TraceMismatch', 'trace SignatureInvalid'],
  ],
  [
    'a key of another agent',
    'trace.cxe',
    (map) => {
      const own = (map.get(11) as Fields[]).find((one) => one.get(2) === 'trace')!;
      own.set(1, flip(own.get(1)));
    },
    ['trace SignatureInvalid'],
  ],
  [
    'the key left out',
    'trace.cxe',
    (map) =>
      map.set(
        11,
        (map.get(11) as Fields[]).filter((one) => one.get(2) !== 'trace'),
      ),
    ['trace NoKey'],
  ],
  [
    'another subject',
    'trace.cxe',
    (map) => map.set(3, 'trace-of-somebody-else'),
    ['page SubjectMissing'],
  ],
  ['a kind that is none', 'trace.cxe', (map) => map.set(2, 'hearsay'), ['page SubjectMissing']],
  [
    'a file',
    'commit.cxe',
    (map) => fileAt(map, 'patch.diff').set(1, ascii('nothing')),
    ['run FileMismatch'],
  ],
  [
    'a file more',
    'commit.cxe',
    (map) => {
      const files = map.get(7) as Fields[];
      files.push(
        new Map<number, Cbor>([
          [0, 'zz.txt'],
          [1, ascii('x')],
        ]),
      );
    },
    ['run FileUnlisted'],
  ],
  [
    'the manifest',
    'commit.cxe',
    (map) => {
      const file = fileAt(map, 'manifest.json');
      file.set(1, concat(file.get(1) as Uint8Array, ascii(' ')));
    },
    ['run SealMismatch'],
  ],
  [
    'the commit',
    'commit.cxe',
    (map) => map.set(12, flip(map.get(12), -3)),
    ['commit CommitMismatch'],
  ],
  [
    'the commit in other evidence',
    'trace.cxe',
    (map) => map.set(12, ascii('tree 0')),
    ['commit CommitMismatch'],
  ],
  [
    'a memory',
    'memory.cxe',
    (map) => at(map, 9, 0).set(2, flip(at(map, 9, 0).get(2), 60)),
    ['memory VersionMismatch'],
  ],
  [
    'which memory it is',
    'memory.cxe',
    (map) => at(map, 9, 0).set(0, (at(map, 9, 0).get(0) as string).replace('#1', '#2')),
    ['page SubjectMissing', 'memory EntryMismatch'],
  ],
  [
    'a proof of state',
    'memory.cxe',
    (map) => {
      const pack = decode((map.get(10) as Uint8Array[])[0]!) as Fields;
      pack.set(3, flip(pack.get(3), -5));
      (map.get(10) as Uint8Array[])[0] = encode(pack);
    },
    ['proof '],
  ],
];

describe('forged evidence', () => {
  for (const [what, name, change, expected] of FORGED)
    it(`is seen: ${what}`, () => {
      const report = changed(name, change);
      if (expected[0] === 'proof ')
        expect(reasons(report).some((one) => one.startsWith('proof '))).toBe(true);
      else expect(reasons(report)).toEqual(expect.arrayContaining(expected));
      const mild = expected.every((one) => /BodyMissing|NotSigned|NoKey/.test(one));
      expect(report.verdict).toBe(mild ? 'indeterminate' : 'broken');
      if (!mild) expect(report.limits).toEqual([]);
    });

  it('is seen wherever a bit is turned over', () => {
    // Kind, time and list of keys are claims (docs/formats/evidence.md): a bit there may change nothing.
    const data = readBlock(read('trace.cxe'));
    let held = 0;
    const step = Math.max(1, Math.floor(data.length / 40));
    for (let byte = 0; byte < data.length; byte += step) {
      const copy = data.slice();
      copy[byte]! ^= 1 << (byte % 8);
      const report = checkEvidence(copy, trust);
      if (report.verdict !== 'holds') continue;
      held++;
      const map = decode(data) as Fields,
        other = decode(copy) as Fields;
      for (const field of [2, 3, 5, 6, 8])
        expect(toHex(encode(other.get(field)!))).toBe(toHex(encode(map.get(field)!)));
    }
    expect(held).toBeLessThan(10);
  }, 120000);
});

describe('SHA-1', () => {
  it('is that of the platform, at every length around a block', () => {
    for (let size = 0; size < 200; size++) {
      const bytes = Uint8Array.from({length: size}, (_, i) => (i * 11 + size) & 255);
      expect(toHex(sha1(bytes))).toBe(createHash('sha1').update(bytes).digest('hex'));
    }
  });
});
