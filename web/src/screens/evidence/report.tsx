// report.tsx - the verdict of a proof, its trust anchors, what it does not prove, and each chain of
// hashes.

import {useEffect, useMemo, useState} from 'preact/hooks';
import {bytes as size, plural, time} from '../../base/format';
import {saveAs} from '../../base/save';
import {Badge, type Tone} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Line, Text} from '../../ui/text';
import {toHex} from '../../proof/bytes';
import type {Entry, Report} from '../../proof/check';
import {bent, judge, type Proof} from './asked';
import {ChainView} from './chain';
import {trusted} from './trust';

export const TONES: Record<Report['verdict'], Tone> = {
  holds: 'good',
  broken: 'bad',
  indeterminate: 'warn',
};

const KINDS: Record<Report['kind'], string> = {
  pack: 'Proof of state',
  multiproof: 'Proof of state',
  manifest: 'Manifest of a snapshot',
  inclusion: 'Entry of a journal',
  consistency: 'Consistency of a journal',
  checkpoint: 'Checkpoint',
  unknown: 'Unknown',
};

const RESTS: Record<string, string> = {
  overall_root: 'a trusted overall root',
  manifest_signature: 'a trusted key, which signed the manifest',
  seal: 'the seal of the manifest in a trusted journal',
  journal_root: 'a trusted journal root',
  checkpoint: 'a trusted key, which signed the checkpoint',
};

const CLAIMS = {
  member: 'is recorded',
  erased: 'was recorded; its content is withheld or erased',
  absent: 'is not recorded',
};

function download(proof: Proof): void {
  saveAs(new Blob([proof.bytes as BlobPart], {type: 'application/octet-stream'}), proof.file);
}

/** Turning a bit over, by hand: the surest way to see that the page really looks. */
export function Tamper({
  size: most,
  at,
  setAt,
}: {
  size: number;
  at: number | null;
  setAt(at: number | null): void;
}) {
  const bits = most * 8;
  return (
    <div class="tamper">
      {at === null ? (
        <button type="button" onClick={() => setAt(Math.floor(bits / 2))}>
          Simulate tampering
        </button>
      ) : (
        <>
          <label for="tamper-at">{`bit ${at & 7} of byte`}</label>
          <input
            id="tamper-at"
            type="number"
            min={0}
            max={most - 1}
            value={at >> 3}
            onInput={(event) => {
              const byte = Number(event.currentTarget.value);
              if (byte >= 0 && byte < most) setAt(byte * 8 + (at & 7));
            }}
          />
          <button type="button" onClick={() => setAt(Math.floor(Math.random() * bits))}>
            Another bit
          </button>
          <button type="button" onClick={() => setAt(null)}>
            Restore
          </button>
        </>
      )}
    </div>
  );
}

function words(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

export function EntryFacts({entry}: {entry: Entry}) {
  return (
    <dl class="entry-facts">
      <dt>kind</dt>
      <dd>
        <code>
          <Line text={entry.kind} />
        </code>
      </dd>
      <dt>written</dt>
      <dd>
        {time(entry.createdNs / 1e9)}
        {entry.createdBy && (
          <>
            {' by '}
            <Text text={words(entry.createdBy)} most={200} />
          </>
        )}
      </dd>
      <dt>content</dt>
      <dd>
        {entry.commitment ? (
          <>
            {`${size(entry.payloadSize)}, bound by the commitment `}
            <code title={toHex(entry.commitment)}>
              {toHex(entry.commitment).slice(0, 16) + '\u2026'}
            </code>
          </>
        ) : entry.payload ? (
          `${size(entry.payloadSize)} inside the entry`
        ) : (
          'none'
        )}
      </dd>
    </dl>
  );
}

export function ReportView({proof}: {proof: Proof}) {
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => setAt(null), [proof]);
  const trust = trusted.value;
  const report = useMemo(
    () => judge(proof, at === null ? proof.bytes : bent(proof.bytes, at), trust),
    [proof, at, trust],
  );
  return (
    <article class="report" aria-label="Verdict">
      <header class="report-head" aria-live="polite">
        <Badge tone={TONES[report.verdict]}>{report.verdict}</Badge>
        <h2>{KINDS[report.kind]}</h2>
        <span class="dim">
          {[report.scheme, size(proof.bytes.length)].filter(Boolean).join(', ')}
        </span>
        <span class="grow" />
        <button type="button" onClick={() => download(proof)}>
          <Icon name="out" /> {proof.file}
        </button>
      </header>
      {at !== null && (
        <p class="report-bent">
          <Icon name="warn" />{' '}
          {`Tampering simulated: bit ${at} is flipped. This is not the original proof.`}
        </p>
      )}
      {report.message && (
        <p class="report-why">
          {report.reason && <code>{report.reason}</code>} <Text text={report.message} />
        </p>
      )}
      {report.questions.length > 0 && (
        <ul class="questions">
          {report.questions.map((one) => (
            <li key={one.uri}>
              <code>
                <Text text={one.uri} most={120} />
              </code>{' '}
              <span>{CLAIMS[one.claim]}</span>
            </li>
          ))}
        </ul>
      )}
      {report.entry && report.kind === 'inclusion' && <EntryFacts entry={report.entry} />}
      <div class="report-columns">
        <section>
          <h3>Trust anchors</h3>
          {report.anchors.length === 0 ? (
            <p class="dim">None: no trusted key or root applies.</p>
          ) : (
            <ul>
              {report.anchors.map((anchor) => (
                <li key={anchor}>{RESTS[anchor] ?? anchor}</li>
              ))}
            </ul>
          )}
        </section>
        <section>
          <h3>Not proven</h3>
          {report.limits.length === 0 ? (
            <p class="dim">
              {report.verdict === 'broken' ? 'Anything: the check failed.' : '\u2013'}
            </p>
          ) : (
            <ul>
              {report.limits.map((limit) => (
                <li key={limit}>{limit}</li>
              ))}
            </ul>
          )}
        </section>
      </div>
      <Tamper size={proof.bytes.length} at={at} setAt={setAt} />
      <h2 class="chains-title">{`Recomputed in this page: ${plural(report.chains.length, 'chain')}`}</h2>
      <p class="legend dim">
        <span class="hash hash-ours">computed</span> here,{' '}
        <span class="hash hash-given">given</span> by the proof,{' '}
        <span class="hash hash-empty">empty</span> subtree
      </p>
      {report.chains.map((chain, i) => (
        <ChainView key={i} chain={chain} />
      ))}
    </article>
  );
}
