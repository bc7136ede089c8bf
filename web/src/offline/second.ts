// second.ts - a second opinion: the page's own checks, written apart from cortex-verify in another
// language, over the same bytes. Two programs with the same defect are less likely than one.
//
// They cover fewer kinds and options. So only a contradiction counts: one says that a file holds,
// the other that it is broken.

import {fromHex, toHex} from '../proof/bytes';
import {checkFile, checkStateProof, type Trust, type Verdict} from '../proof/check';
import {checkEvidenceFile} from '../proof/evidence';
import {readVerifierKey, type VerifierKey} from '../proof/note';
import {NO_OPTIONS, type Options} from './options';

/** What is known of the program's answer (--json). */
export interface ProgramAnswer {
  verdict: Verdict;
  reason: string | null;
  message: string;
  kind: string;
  limits: string[];
  findings?: {part: string; verdict: Verdict}[];
}

export interface Opinion {
  /** Null when there is none. */
  verdict: Verdict | null;
  reason: string | null;
  message: string;
  contradicts: boolean;
}

/** Its signatures are slow: milliseconds each, where the program takes a quarter of one. */
const BYTES_MAX = 8 << 20;
const KINDS = ['pack', 'manifest', 'inclusion', 'consistency', 'checkpoint'];

function none(message: string): Opinion {
  return {verdict: null, reason: null, message, contradicts: false};
}

/** Keys with a name; null when there are others, which it cannot use. */
function namedKeys(options: Options): VerifierKey[] | null {
  try {
    return options.keys.map(readVerifierKey);
  } catch {
    return null;
  }
}

/** Keys of evidence files need no name. */
function anyKeys(options: Options): VerifierKey[] {
  return options.keys.map((key) =>
    /^[0-9a-f]{64}$/i.test(key)
      ? {name: '', id: new Uint8Array(4), key: fromHex(key.toLowerCase())}
      : readVerifierKey(key),
  );
}

/** Nothing is asked that it does not know: then its `holds` against `broken` is a contradiction, too. */
function isPlain(options: Options): boolean {
  const known: (keyof Options)[] = ['keys', 'overallRoot', 'root', 'fromRoot', 'time'];
  return Object.entries(NO_OPTIONS).every(
    ([name, value]) =>
      known.includes(name as keyof Options) ||
      JSON.stringify(options[name as keyof Options]) === JSON.stringify(value),
  );
}

function ask(
  bytes: Uint8Array,
  kind: string,
  options: Options,
): {verdict: Verdict; reason: string | null; message: string} | string {
  const root = (text: string): Uint8Array | undefined =>
    text.trim() ? fromHex(text.trim().toLowerCase()) : undefined;
  if (kind === 'evidence')
    return checkEvidenceFile(bytes, {
      keys: anyKeys(options),
      roots: [options.root, options.overallRoot].filter(Boolean).map((one) => toHex(root(one)!)),
    });
  const keys = namedKeys(options);
  if (kind === 'multiproof' && options.manifest)
    return checkStateProof(bytes, options.manifest.bytes);
  if (!KINDS.includes(kind)) return `it has no check of this kind of file (${kind})`;
  if (!keys) return 'it needs keys with a name (NAME+ID+BASE64)';
  const trust: Trust = {
    keys,
    overallRoot: root(options.overallRoot),
    journalRoot: root(options.root),
    olderRoot: root(options.fromRoot),
  };
  return checkFile(bytes, trust);
}

/** Its checks have no page to compare with: a finding about the page alone is the program's. */
function isAboutPageOnly(answer: ProgramAnswer): boolean {
  const broken = (answer.findings ?? []).filter((one) => one.verdict === 'broken');
  return broken.length > 0 && broken.every((one) => one.part === 'page');
}

export function secondOpinion(bytes: Uint8Array, options: Options, answer: ProgramAnswer): Opinion {
  if (bytes.length > BYTES_MAX) return none(`it checks files of at most ${BYTES_MAX >> 20} MiB`);
  let report: ReturnType<typeof ask>;
  try {
    report = ask(bytes, answer.kind, options);
  } catch (error) {
    return none(`it could not check this: ${(error as Error).message}`);
  }
  if (typeof report === 'string') return none(report);
  const {verdict, reason, message} = report;
  const contradicts =
    (answer.verdict === 'holds' && verdict === 'broken') ||
    (answer.verdict === 'broken' &&
      verdict === 'holds' &&
      isPlain(options) &&
      !isAboutPageOnly(answer));
  return {verdict, reason, message, contradicts};
}
