// evidence_file.tsx - an evidence file of the user: every part recomputed here, its contents, and
// what was not checked.

import type {ComponentChildren} from 'preact';
import {useEffect, useMemo, useState} from 'preact/hooks';
import {bytes as size, count, plural, shortAgent, time} from '../../base/format';
import {readJson} from '../../base/json';
import {saveAs} from '../../base/save';
import {toHex} from '../../proof/bytes';
import {asMap, decode} from '../../proof/cbor';
import {blank, reported, type Report} from '../../proof/check';
import {
  checkEvidence,
  checkEvidenceFile,
  readBlock,
  type EvidenceReport,
  type Part,
} from '../../proof/evidence';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Line, Text} from '../../ui/text';
import {Value} from '../../ui/value';
import {bent, type Proof} from './asked';
import {ChainView} from './chain';
import {Tamper, TONES} from './report';
import {trusted} from './trust';

const words = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const CHAINS = 12;
const SHOWN = 1 << 16;

/** The data of the file, or null when there is none that could be read. */
function dataOf(file: Proof): Uint8Array | null {
  let data: Uint8Array | null = null;
  reported(blank('unknown'), () => (data = readBlock(file.bytes)));
  return data;
}

export function EvidenceFileView({file}: {file: Proof}) {
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => setAt(null), [file]);
  const trust = trusted.value;
  const data = useMemo(() => dataOf(file), [file]);
  const report = useMemo(
    () =>
      data === null
        ? checkEvidenceFile(file.bytes, trust)
        : checkEvidence(at === null ? data : bent(data, at), trust),
    [file, data, at, trust],
  );
  const {evidence} = report;
  return (
    <article class="report" aria-label="Verdict">
      <header class="report-head" aria-live="polite">
        <Badge tone={TONES[report.verdict]}>
          {evidence ? `data ${report.verdict}` : report.verdict}
        </Badge>
        {evidence && (
          <Badge
            tone="warn"
            icon="warn"
            title="cortex-verify rebuilds the page and compares every byte; this page does not"
          >
            page not checked here
          </Badge>
        )}
        <h2>
          {evidence ? (
            <>
              {`Evidence about a ${['run', 'trace', 'commit', 'memory', 'session'].includes(evidence.kind) ? evidence.kind : 'object'} `}
              <Line class="mono" text={evidence.id} most={60} />
            </>
          ) : (
            'Evidence file'
          )}
        </h2>
        <span class="dim">{size(file.bytes.length)}</span>
        <span class="grow" />
        <button
          type="button"
          onClick={() =>
            saveAs(
              new Blob([file.bytes as BlobPart], {type: 'application/octet-stream'}),
              file.file,
            )
          }
        >
          <Icon name="out" /> <Line text={file.file} most={40} />
        </button>
      </header>
      {at !== null && (
        <p class="report-bent">
          <Icon name="warn" />{' '}
          {`Tampering simulated: bit ${at} of the data is flipped. This is not the content of the file.`}
        </p>
      )}
      {report.message && (
        <p class="report-why">
          {report.reason && <code>{report.reason}</code>} <Text text={report.message} />
        </p>
      )}
      <Parts report={report} />
      <div class="report-columns">
        <Rests report={report} />
        <section>
          <h3>Not proven</h3>
          {report.limits.length === 0 ? (
            <p class="dim">Anything: the check failed.</p>
          ) : (
            <ul>
              {report.limits.map((limit) => (
                <li key={limit}>{limit}</li>
              ))}
            </ul>
          )}
        </section>
      </div>
      {data !== null && <Tamper size={data.length} at={at} setAt={setAt} />}
      {evidence && <Contents report={report} />}
      <Chains report={report} />
    </article>
  );
}

/* --- what was checked --------------------------------------------------------------------------- */

const NAMES: Record<Part, string> = {
  page: 'Subject',
  journal: 'Journals',
  entry: 'Entries',
  home: 'Home root',
  run: 'Run',
  commit: 'Commit',
  trace: 'Decisions',
  memory: 'Memories',
  proof: 'Proofs of state',
};

/** How many of each there are, and what that means when all is well. */
function accounts(report: EvidenceReport): [Part, number, string][] {
  const e = report.evidence!;
  const entries = e.entries.length,
    shown = entries - report.bodiesMissing;
  return [
    ['page', 1, 'the subject is in the file'],
    [
      'journal',
      e.journals.length,
      `${report.journalsSigned} signed by a trusted key, ${report.journalsAnchored} anchored by a trusted key or root`,
    ],
    [
      'entry',
      entries,
      `each inclusion proof leads to the root of its journal; ${shown === entries ? 'every payload matches its commitment' : `${report.bodiesMissing} without payload`}`,
    ],
    [
      'home',
      e.homes.length,
      `each journal leads to the home root; ${report.homesSigned} signed by a trusted key`,
    ],
    [
      'run',
      e.files.length,
      `${e.files.length} files, ${report.filesListed} listed in the manifest; file hashes, event chain, contract and manifest match the seal`,
    ],
    ['commit', e.commit ? 1 : 0, 'the commit hash matches, and an event of the run created it'],
    [
      'trace',
      e.decisions.length,
      `signed by the key that the file names; ${report.tracesSigned} by a trusted key`,
    ],
    ['memory', e.memories.length, 'each matches the version that an entry recorded'],
    ['proof', e.packs.length, 'each proof leads to the root of its snapshot'],
  ];
}

function Parts({report}: {report: EvidenceReport}) {
  if (!report.evidence) return null;
  return (
    <div class="parts-scroll" tabIndex={0} role="region" aria-label="Checks">
      <table class="parts">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col">Count</th>
            <th scope="col">Result</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Page</th>
            <td>
              <Badge tone="warn" icon="warn">
                not checked
              </Badge>
            </td>
            <td>
              only its beginning and its data block were read here; to compare every byte, run{' '}
              <code>cortex-verify</code>
            </td>
          </tr>
          {accounts(report)
            .filter(([, many]) => many > 0)
            .map(([part, many, good]) => {
              const found = report.findings.filter((one) => one.part === part);
              const worst = found.some((one) => one.verdict === 'broken')
                ? 'broken'
                : found.length > 0
                  ? 'indeterminate'
                  : 'holds';
              return (
                <tr key={part} class={`part-${part}`}>
                  <th scope="row">
                    {NAMES[part]}
                    {part !== 'page' && part !== 'run' && part !== 'commit'
                      ? ` ${count(many)}`
                      : ''}
                  </th>
                  <td>
                    <Badge tone={TONES[worst]}>{worst}</Badge>
                  </td>
                  <td>
                    {found.length === 0 ? (
                      good
                    ) : (
                      <ul>
                        {found.slice(0, 8).map((one, i) => (
                          <li key={i}>
                            <code>{one.reason}</code>
                            {` ${many > 1 ? `no. ${one.number + 1}: ` : ''}`}
                            <Text text={one.message} most={300} />
                          </li>
                        ))}
                        {found.length > 8 && <li class="dim">{`and ${found.length - 8} more`}</li>}
                      </ul>
                    )}
                  </td>
                </tr>
              );
            })}
        </tbody>
      </table>
    </div>
  );
}

function Rests({report}: {report: EvidenceReport}) {
  const journals = report.evidence?.journals.length ?? 0;
  const rests = [
    ...(report.journalsSigned > 0
      ? [`a trusted key, which signed ${report.journalsSigned} of ${plural(journals, 'journal')}`]
      : []),
    ...(report.journalsAnchored > report.journalsSigned
      ? [`a trusted root of ${plural(report.journalsAnchored - report.journalsSigned, 'journal')}`]
      : []),
    ...(report.tracesSigned > 0
      ? [`a trusted key, which signed ${plural(report.tracesSigned, 'decision')}`]
      : []),
  ];
  return (
    <section>
      <h3>Trust anchors</h3>
      {rests.length === 0 || report.verdict === 'broken' ? (
        <p class="dim">None: no trusted key or root applies.</p>
      ) : (
        <ul>
          {rests.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

/* --- what it shows ------------------------------------------------------------------------------ */

function Shown({bytes, name}: {bytes: Uint8Array; name: string}) {
  const text = words(bytes.subarray(0, SHOWN));
  const isJson =
    bytes.length <= SHOWN &&
    /^\s*[{[]/.test(text) &&
    readJson(text).kind !== 'cut' &&
    !name.endsWith('.jsonl');
  return (
    <div class="shown">
      {isJson ? (
        <Value value={{cut: false, size: bytes.length, text}} />
      ) : (
        <pre>
          <Text text={text} most={4000} />
        </pre>
      )}
      {bytes.length > SHOWN && (
        <p class="dim">{`the first ${size(SHOWN)} of ${size(bytes.length)}`}</p>
      )}
    </div>
  );
}

/** Opened on request: a file may contain thousands. */
function Fold({title, children}: {title: ComponentChildren; children: () => ComponentChildren}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        class="link fold-open"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="twist" aria-hidden="true">
          {isOpen ? '\u25be' : '\u25b8'}
        </span>
        {title}
      </button>
      {isOpen && children()}
    </li>
  );
}

function Some<T>({
  of,
  most = 50,
  title,
  row,
}: {
  of: readonly T[];
  most?: number;
  title: string;
  row(one: T, i: number): ComponentChildren;
}) {
  const [limit, setLimit] = useState(most);
  if (of.length === 0) return null;
  return (
    <section class="contents">
      <h3>{title}</h3>
      <ul>{of.slice(0, limit).map(row)}</ul>
      {of.length > limit && (
        <button
          type="button"
          class="more"
          onClick={() => setLimit(limit * 10)}
        >{`${count(of.length - limit)} more`}</button>
      )}
    </section>
  );
}

/** The content of a memory, as far as it is text. */
function MemoryShown({version}: {version: Uint8Array}) {
  const map = judgedMap(version),
    data = map?.get(4);
  return data instanceof Uint8Array ? (
    <Shown bytes={data} name="" />
  ) : (
    <p class="dim">it has no payload</p>
  );
}

function judgedMap(bytes: Uint8Array): ReturnType<typeof asMap> | null {
  let map: ReturnType<typeof asMap> | null = null;
  reported(blank('unknown'), () => (map = asMap(decode(bytes), 'version')));
  return map;
}

function Contents({report}: {report: EvidenceReport}) {
  const e = report.evidence!;
  return (
    <>
      <h2 class="chains-title">Contents</h2>
      <p class="dim">{`Created ${time(e.madeAtNs / 1e9)} according to its creator. Everything below comes from the checked data.`}</p>
      <Some
        of={e.journals}
        title="Journals"
        row={(one, i) => (
          <li key={i} class="content-line">
            <Line text={shortAgent(one.actor)} most={60} />
            <span class="dim">{plural(one.size, 'entry', 'entries')}</span>
            <code title={toHex(one.root)}>{toHex(one.root).slice(0, 16) + '\u2026'}</code>
            {!one.checkpoint && <span class="dim">no checkpoint</span>}
          </li>
        )}
      />
      <Some
        of={e.decisions}
        title="Decisions"
        row={(one, i) => (
          <Fold
            key={i}
            title={
              <>
                {`Decision ${i + 1}, signed by `}
                <Line class="mono" text={one.keyId} most={40} />
              </>
            }
          >
            {() => <Shown bytes={one.canonical} name="" />}
          </Fold>
        )}
      />
      <Some
        of={e.memories}
        title="Memories"
        row={(one, i) => (
          <Fold key={i} title={<Line class="mono" text={one.uri} most={90} />}>
            {() =>
              one.version ? (
                <MemoryShown version={one.version} />
              ) : (
                <p class="dim">its content was erased or is not in the file</p>
              )
            }
          </Fold>
        )}
      />
      {e.commit && (
        <Some
          of={[e.commit]}
          title="Commit"
          row={(one) => (
            <Fold key="commit" title={<code>{e.id.slice(0, 80)}</code>}>
              {() => <Shown bytes={one} name="" />}
            </Fold>
          )}
        />
      )}
      <Some
        of={e.files}
        title="Files of the run"
        row={(one, i) => (
          <Fold
            key={i}
            title={
              <>
                <Line class="mono" text={one.path} most={90} />
                <span class="dim">{` ${size(one.bytes.length)}`}</span>
              </>
            }
          >
            {() => <Shown bytes={one.bytes} name={one.path} />}
          </Fold>
        )}
      />
      <Some
        of={e.entries}
        title="Entries"
        row={(_, i) => {
          const entry = report.entries[i],
            payload = report.payloads[i];
          return entry ? (
            <Fold
              key={i}
              title={
                <>
                  {`${e.entries[i]!.journal + 1} / ${entry.seq} `}
                  <code>
                    <Line text={entry.kind} most={64} />
                  </code>
                  <span class="dim">{` ${time(entry.createdNs / 1e9)}`}</span>
                </>
              }
            >
              {() =>
                payload ? <Shown bytes={payload} name="" /> : <p class="dim">without its content</p>
              }
            </Fold>
          ) : (
            <li key={i} class="content-line">
              <Icon name="cross" label="invalid" />
              {`entry ${i + 1} is not in its journal`}
            </li>
          );
        }}
      />
    </>
  );
}

function Chains({report}: {report: EvidenceReport}) {
  const [most, setMost] = useState(CHAINS);
  if (report.chains.length === 0) return null;
  return (
    <>
      <h2 class="chains-title">{`Recomputed in this page: ${plural(report.chains.length, 'chain')}`}</h2>
      {report.chains.slice(0, most).map((chain: Report['chains'][number], i) => (
        <ChainView key={i} chain={chain} />
      ))}
      {report.chains.length > most && (
        <button
          type="button"
          class="more"
          onClick={() => setMost(most * 10)}
        >{`${count(report.chains.length - most)} more`}</button>
      )}
    </>
  );
}
