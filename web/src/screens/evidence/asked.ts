// asked.ts - a proof from the server or a file, verified again when trust anchors change or a bit
// is flipped.

import type {ConsistencyProof, EntryProof, MemoryProof} from '../../base/api-types';
import {equal, fromBase64, fromHex, toHex} from '../../proof/bytes';
import {checkFile, type Report} from '../../proof/check';
import {checkNote, readCheckpoint} from '../../proof/note';
import type {Trusted} from './trust';

/** What the endpoints of proofs answer; members that a kind does not have are missing. */
export type ProofAnswer = Pick<EntryProof, 'bytes' | 'proof'> &
  Partial<EntryProof & ConsistencyProof & MemoryProof>;

export interface Proof {
  bytes: Uint8Array;
  /** For the download. */
  file: string;
  /** Roots that the server states: compared with, and no reason to believe. */
  stated: {journal?: Uint8Array; older?: Uint8Array; overall?: Uint8Array};
  /** A signed note that the journal root was taken from. */
  checkpoint?: string;
}

export function proofOf(answer: ProofAnswer, file: string, checkpoint?: string): Proof {
  const root = (text: string | undefined): Uint8Array | undefined =>
    text ? fromHex(text) : undefined;
  return {
    bytes: fromBase64(answer.proof),
    file,
    checkpoint,
    stated: {
      journal: root(answer.to_root ?? answer.journal_root),
      older: root(answer.from_root),
      overall: root(answer.overall_root),
    },
  };
}

function isTrusted(root: Uint8Array | undefined, trust: Trusted): boolean {
  return root !== undefined && trust.roots.includes(toHex(root));
}

/** Whether a key that is trusted signed exactly this root. */
function isSigned(root: Uint8Array | undefined, note: string | undefined, trust: Trusted): boolean {
  if (!root || !note) return false;
  try {
    const checkpoint = readCheckpoint(note);
    return (
      equal(checkpoint.root, root) &&
      trust.keys.some((key) => checkNote(checkpoint, key) === 'signed')
    );
  } catch {
    return false;
  }
}

/** The bit at a place turned over: what a forger would have to get away with. */
export function bent(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at >> 3]! ^= 0x80 >> (at & 7);
  return copy;
}

/**
 * Checks a proof.  A root that only this server states makes the check possible but bears nothing: then the
 * verdict is `indeterminate`, as it is for cortex-verify without a root.
 */
export function judge(proof: Proof, bytes: Uint8Array, trust: Trusted): Report {
  const overall = isTrusted(proof.stated.overall, trust) ? proof.stated.overall : undefined;
  const report = checkFile(bytes, {
    keys: [...trust.keys],
    journalRoot: proof.stated.journal,
    olderRoot: proof.stated.older,
    overallRoot: overall,
  });
  const rests =
    isTrusted(proof.stated.journal, trust) ||
    isSigned(proof.stated.journal, proof.checkpoint, trust);
  const byJournal = report.anchors.includes('journal_root') || report.anchors.includes('seal');
  if (rests) return report;
  for (const chain of report.chains)
    if (proof.stated.journal)
      chain.expectedIs = chain.expectedIs.replace('you gave', 'that this server states');
  if (report.verdict !== 'holds' || !byJournal) return report;
  report.anchors = report.anchors.filter(
    (anchor) => anchor !== 'journal_root' && anchor !== 'seal',
  );
  if (report.anchors.length > 0) return report;
  report.verdict = 'indeterminate';
  report.reason = 'NotAnchored';
  report.message =
    'All hashes match, but the root comes from this server only. ' +
    'Compare the root with a root or a signed checkpoint that you keep elsewhere.';
  report.limits.unshift(
    'That the server shows the same journal to everyone: it could keep two versions.',
  );
  return report;
}
