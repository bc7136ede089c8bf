// evidence_home.ts - journals of an evidence file in a home root, the root over all actors of the
// data directory, and its signed checkpoint (docs/formats/evidence.md, ledger.md §15).

import {ascii, equal, toHex} from './bytes';
import {asBytes, asList, asMap, asNumber, asText, decode, only} from './cbor';
import {blank, Broken, checkInclusion, readInclusion, readScheme} from './check';
import {addFindings, keyNamed, type Checker} from './evidence';
import type {Home} from './evidence_read';
import {foldConsistency, foldInclusion, Malformed} from './journal';
import {checkNote, readCheckpoint, type Checkpoint} from './note';
import {schemeNamed, type Scheme} from './scheme';
import {sha256} from './sha256';

interface Leaf {
  actor: string;
  scheme: Scheme;
  size: number;
  overall: Uint8Array;
}

function readLeaf(bytes: Uint8Array): Leaf {
  const map = asMap(decode(bytes), 'home leaf');
  only(map, 'home leaf', [0, 1, 2, 3, 4]);
  if (map.get(0) !== 1) throw new Broken('NonCanonical', 'home leaf: expected schema 1');
  return {
    actor: asText(map.get(1), 'actor'),
    scheme: readScheme(map.get(2)),
    size: asNumber(map.get(3), 'size'),
    overall: asBytes(map.get(4), 'overall root', 32),
  };
}

/** What a path that does not fit throws is a verdict, too. */
function folded<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof Malformed) throw new Broken('ProofMalformed', error.message);
    throw error;
  }
}

interface HomeProof {
  leaf: Leaf;
  /** The journal of home roots that it leads to. */
  size: number;
  root: Uint8Array;
  note: Uint8Array;
}

/** From the leaf to the home root, and from its entry to the journal of home roots. */
function readHomeProof(bytes: Uint8Array): HomeProof {
  const map = asMap(decode(bytes), 'home proof');
  only(map, 'home proof', [0, 1, 2, 3, 4, 5, 6]);
  if (map.get(0) !== 1 || map.get(1) !== 'cortex.home-proof')
    throw new Broken('NonCanonical', 'expected version 1 of cortex.home-proof');
  const leafBytes = asBytes(map.get(2), 'leaf'),
    index = asNumber(map.get(3), 'position');
  const path = asList(map.get(4), 'path').map((hash) => asBytes(hash, 'path', 32));
  const inclusion = readInclusion(decode(asBytes(map.get(5), 'inclusion proof')));
  const leaf = readLeaf(leafBytes),
    report = blank('inclusion');
  const root = folded(() => checkInclusion(report, inclusion, null, ''));
  const entry = report.entry!;
  if (inclusion.scheme.name !== 'cortex-1' || entry.kind !== 'home.root' || !entry.payload)
    throw new Broken('NotHomeRoot', "the journal's entry records no home root");
  const recorded = asMap(decode(entry.payload), 'home root');
  only(recorded, 'home root', [0, 1, 2, 3]);
  const hash = sha256(ascii('cortex.home.leaf.v1'), leafBytes);
  const home = folded(() =>
    foldInclusion(schemeNamed('cortex-1')!, hash, index, asNumber(recorded.get(1), 'actors'), path),
  );
  if (recorded.get(0) !== 1 || !equal(home.root, asBytes(recorded.get(2), 'home root', 32)))
    throw new Broken(
      'HomeRootMismatch',
      'the leaf does not lead to the home root that is recorded',
    );
  return {leaf, size: inclusion.size, root, note: asBytes(map.get(6), 'checkpoint')};
}

/** The journal of the file is the one in the home root, or continues it. */
function checkGrowth(c: Checker, home: Home, leaf: Leaf): void {
  const journal = c.evidence.journals[home.journal]!;
  const refuse = (why: string): never => {
    throw new Broken('HomeMismatch', why);
  };
  const overall = journal.scheme.overall(home.journalRoot, home.memoriesRoot, home.edgesRoot);
  if (
    leaf.actor !== journal.actor ||
    leaf.scheme.name !== journal.scheme.name ||
    !equal(overall, leaf.overall)
  )
    refuse('the leaf in the home root is not one of this journal');
  const isSame = leaf.size === journal.size;
  if (isSame && !equal(home.journalRoot, journal.root))
    refuse('the journal in the home root has another root');
  if (isSame === (home.consistency !== null) || leaf.size > journal.size)
    refuse('the journal does not continue the one in the home root');
  if (!home.consistency) return;
  const map = asMap(decode(home.consistency), 'consistency proof');
  only(map, 'consistency proof', [0, 1, 2, 3, 4]);
  if (map.get(0) !== 1) throw new Broken('NonCanonical', 'consistency proof: expected schema 1');
  if (map.get(2) !== leaf.size || map.get(3) !== journal.size)
    throw new Broken('SizeMismatch', 'the consistency proof is of other sizes');
  const path = asList(map.get(4), 'path').map((hash) => asBytes(hash, 'path', 32));
  const grown = folded(() =>
    foldConsistency(
      readScheme(map.get(1)),
      home.journalRoot,
      leaf.size,
      journal.size,
      path,
      journal.root,
    ),
  );
  if (!equal(grown.older, home.journalRoot) || !equal(grown.newer, journal.root))
    throw new Broken('RootMismatch', 'the newer journal does not begin with the older');
}

function readNote(proof: HomeProof): Checkpoint {
  let note: Checkpoint;
  try {
    note = readCheckpoint(new TextDecoder('utf-8', {fatal: true}).decode(proof.note));
  } catch (error) {
    throw new Broken('BadNote', `its checkpoint is not a signed note: ${(error as Error).message}`);
  }
  if (note.size !== proof.size || !equal(note.root, proof.root))
    throw new Broken('CheckpointMismatch', "the checkpoint is not of this home root's journal");
  return note;
}

/** Entries are checked already. */
export function checkHome(c: Checker, number: number): void {
  const home = c.evidence.homes[number]!;
  let proof!: HomeProof, note!: Checkpoint;
  const isGood = addFindings(c, 'home', number, () => {
    proof = readHomeProof(home.proof);
    checkGrowth(c, home, proof.leaf);
    note = readNote(proof);
  });
  if (!isGood) return;
  const results = c.trust.keys.map((key) => checkNote(note, keyNamed(key, note.origin)));
  if (results.includes('forged'))
    return c.find(
      'home',
      number,
      'broken',
      'SignatureInvalid',
      'a key that you trust did not make its signature',
    );
  const isCovered = c.evidence.entries.every(
    (one, i) =>
      one.journal !== home.journal ||
      (c.entries[i] !== null && c.entries[i]!.seq < proof.leaf.size),
  );
  if (!isCovered)
    return c.limit('Entries shown that are newer than the home root are not covered by it.');
  c.named.add(home.journal);
  if (results.includes('signed')) {
    c.signed.add(home.journal);
    c.homesSigned++;
  }
  if (results.includes('signed') || c.trust.roots.includes(toHex(proof.root)))
    c.anchored.add(home.journal);
}
