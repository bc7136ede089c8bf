// evidence.tsx - proofs from this server or from a file, recomputed in the page and drawn.
//
//   #/evidence?actor=NAME&what=entry|state|growth|file|auditor&seq=N&uri=URI&at=SNAPSHOT&from=N&checkpoint=ORIGIN

import {useEffect, useMemo, useState} from 'preact/hooks';
import {getFile} from '../../base/api';
import {bytes as size} from '../../base/format';
import {useAnswer, type Loaded} from '../../base/load';
import {saveAs} from '../../base/save';
import {adjust, route} from '../../base/router';
import {Split} from '../../ui/split';
import {Answer, Empty, Failed, Loading} from '../../ui/states';
import {Tabs} from '../../ui/tabs';
import {Line} from '../../ui/text';
import {proofOf, type Proof, type ProofAnswer} from './asked';
import {isEvidence} from '../../proof/evidence';
import {EvidenceFileView} from './evidence_file';
import {ReportView} from './report';
import {Side} from './side';
import type {Actor, Checkpoints, HomeRootNow, Memories, Roots} from './types';

const FILE_BYTES_MAX = 64 << 20;

const TABS = [
  {id: 'entry', title: 'Entry'},
  {id: 'state', title: 'A memory'},
  {id: 'growth', title: 'Consistency'},
  {id: 'file', title: 'Your file'},
  {id: 'auditor', title: 'Export'},
];

type Query = Record<string, string | number | boolean | undefined>;

/** Fetches a proof and shows its report; asked again when the question changes. */
function Fetched({
  path,
  query,
  file,
  checkpoint,
}: {
  path: string;
  query: Query;
  file: string;
  checkpoint?: string;
}) {
  const of = useAnswer<ProofAnswer>(path, query, false);
  const proof = useMemo(
    () => (of.value ? proofOf(of.value, file, checkpoint) : null),
    [of.value, checkpoint],
  );
  if (of.error) return <Failed error={of.error} />;
  if (!proof) return <Loading what="Loading the proof" />;
  return <ReportView proof={proof} />;
}

function numberOf(text: string | undefined, otherwise: number): number {
  return text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : otherwise;
}

function NumberField({
  id,
  label,
  value,
  max,
  onValue,
}: {
  id: string;
  label: string;
  value: number;
  max: number;
  onValue(value: number): void;
}) {
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        type="number"
        min={0}
        max={max}
        value={value}
        class="number"
        onChange={(event) => onValue(numberOf(event.currentTarget.value, value))}
      />
    </>
  );
}

interface Of {
  actor: Actor;
  /** The checkpoint that was chosen, or null. */
  note: Checkpoints['items'][number] | null;
}

function EntryProof({actor, note}: Of) {
  const seq = numberOf(route.value.query['seq'], Math.max(0, actor.journal_size - 1));
  const size = note ? note.size : actor.journal_size;
  return (
    <>
      <div class="ask">
        <NumberField
          id="entry-seq"
          label="Entry"
          value={seq}
          max={size - 1}
          onValue={(value) => adjust({seq: String(value)})}
        />
        <span class="dim">{`of ${size}, in the ${note ? 'journal of the checkpoint' : 'current journal'}`}</span>
      </div>
      {actor.journal_size === 0 ? (
        <Empty title="This journal has no entries" />
      ) : seq >= size ? (
        <Empty title="The checkpoint does not cover this entry">
          <p>{`Entry ${seq} was added after the checkpoint, which covers the first ${size} entries.`}</p>
        </Empty>
      ) : (
        <Fetched
          path="/api/v1/proofs/entry"
          query={{actor: actor.actor, seq, size}}
          file={`entry-${seq}.proof`}
          checkpoint={note?.note}
        />
      )}
    </>
  );
}

function MemoryProof({actor}: Of) {
  const {uri, at, absent} = route.value.query;
  const memories = useAnswer<Memories>('/api/v1/memories', {
    actor: actor.actor,
    all: true,
    limit: 200,
  });
  return (
    <>
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          const field = event.currentTarget.elements.namedItem('uri') as HTMLInputElement;
          adjust({uri: field.value.trim() || null});
        }}
      >
        <label for="memory-uri">URI</label>
        <input
          id="memory-uri"
          name="uri"
          class="uri"
          key={uri}
          defaultValue={uri}
          placeholder="matrix://cortex/Fact/\u2026#1"
          spellcheck={false}
        />
        <button type="submit">Prove</button>
        <label class="check">
          <input
            type="checkbox"
            checked={absent === '1'}
            onChange={(event) => adjust({absent: event.currentTarget.checked ? '1' : null})}
          />{' '}
          that the memory is absent
        </label>
        <span class="dim">{at ? `at snapshot ${at}` : 'at the newest snapshot'}</span>
      </form>
      {uri ? (
        <Fetched
          path="/api/v1/proofs/memory"
          query={{
            actor: actor.actor,
            uri,
            at: at || undefined,
            absent: absent === '1' || undefined,
          }}
          file="state.proof"
        />
      ) : (
        <Choose of={memories} />
      )}
    </>
  );
}

function Choose({of}: {of: Loaded<Memories>}) {
  return (
    <Answer of={of} what="Memories">
      {(found) =>
        found.memories.length === 0 ? (
          <Empty title="This actor has no memories">
            <p>
              Traces and runs are journal entries: prove an entry instead.{' '}
              <code>cortex memory write</code> creates a memory.
            </p>
          </Empty>
        ) : (
          <ul class="memories" aria-label="Memories">
            {found.memories.map((one) => (
              <li key={one.uri}>
                <button type="button" class="memory" onClick={() => adjust({uri: one.uri})}>
                  <Line class="mono" text={one.uri.replace('matrix://cortex/', '')} most={60} />
                  <Line class="dim" text={one.forms.short} most={120} />
                </button>
              </li>
            ))}
          </ul>
        )
      }
    </Answer>
  );
}

function GrowthProof({actor, note}: Of) {
  const from = numberOf(
    route.value.query['from'],
    note ? note.size : Math.min(1, actor.journal_size),
  );
  return (
    <>
      <div class="ask">
        <NumberField
          id="growth-from"
          label="The first"
          value={from}
          max={actor.journal_size}
          onValue={(value) => adjust({from: String(value)})}
        />
        <span class="dim">{`of ${actor.journal_size} entries are unchanged`}</span>
      </div>
      {from < 1 || from > actor.journal_size ? (
        <Empty title="Nothing to compare">
          <p>{`Choose a size from 1 to ${actor.journal_size}.`}</p>
        </Empty>
      ) : (
        <Fetched
          path="/api/v1/proofs/consistency"
          query={{actor: actor.actor, from, to: actor.journal_size}}
          file={`growth-${from}-${actor.journal_size}.proof`}
        />
      )}
    </>
  );
}

/** A file from the person's own disk is checked here and sent nowhere. */
function OwnFile() {
  const [proof, setProof] = useState<Proof | null>(null);
  const [why, setWhy] = useState<Error | null>(null);
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setWhy(null);
    setProof(null);
    if (file.size > FILE_BYTES_MAX)
      return setWhy(new Error('The file is larger than 64 MiB, the limit for a proof.'));
    setProof({bytes: new Uint8Array(await file.arrayBuffer()), file: file.name, stated: {}});
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the input does the same without a mouse
    <div
      class="own"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <div class="ask">
        <label for="own-file">A proof, manifest, checkpoint or evidence file</label>
        <input
          id="own-file"
          type="file"
          onChange={(event) => void take(event.currentTarget.files?.[0])}
        />
      </div>
      {why && <Failed error={why} />}
      {proof ? (
        isEvidence(proof.bytes) ? (
          <EvidenceFileView key={proof.file} file={proof} />
        ) : (
          <ReportView proof={proof} />
        )
      ) : (
        !why && (
          <Empty title="The file stays in your browser">
            <p>
              Choose a file that <code>cortex prove</code>, <code>cortex checkpoint</code>,{' '}
              <code>cortex evidence</code> created, or drop it here. Your trusted keys and roots are
              listed on the left.
            </p>
          </Empty>
        )
      )}
    </div>
  );
}

/** An evidence file about one object, which cortex-verify checks and a browser shows. */
function ForAuditor() {
  const id = route.value.query['id'] ?? '';
  const [state, setState] = useState<{busy: boolean; why: Error | null; made: string}>({
    busy: false,
    why: null,
    made: '',
  });
  const fetchFile = async (wanted: string): Promise<void> => {
    setState({busy: true, why: null, made: ''});
    try {
      const file = await getFile('/api/v1/evidence', {id: wanted});
      saveAs(file, 'evidence.cxe');
      setState({busy: false, why: null, made: size(file.size)});
    } catch (error) {
      setState({busy: false, why: error as Error, made: ''});
    }
  };
  return (
    <>
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = (
            event.currentTarget.elements.namedItem('id') as HTMLInputElement
          ).value.trim();
          adjust({id: wanted || null});
          if (wanted) void fetchFile(wanted);
        }}
      >
        <label for="evidence-id">Run, trace, commit, memory or session</label>
        <input
          id="evidence-id"
          name="id"
          class="uri"
          key={id}
          defaultValue={id}
          placeholder="id, or the first digits of its hash"
          spellcheck={false}
        />
        <button type="submit" disabled={state.busy}>
          Create evidence file
        </button>
      </form>
      {state.why ? (
        <Failed error={state.why} />
      ) : state.busy ? (
        <Loading what="Collecting entries and proofs" />
      ) : (
        <Empty
          title={
            state.made ? `Saved evidence.cxe (${state.made})` : 'A self-contained evidence file'
          }
        >
          <p>
            It contains the entries with their proofs, the signed decisions, the run's files and a
            page that describes them. <code>cortex-verify evidence.cxe</code> checks it offline and
            without a data directory; renamed to <code>.html</code> a browser shows it.
          </p>
          <p>
            This server signs nothing. <code>cortex evidence ID --sign KEY</code> creates the same
            file with a signed checkpoint, so that a reader can verify whose journal it is.
          </p>
        </Empty>
      )}
    </>
  );
}

/** What the root over all actors covers; only a checkpoint stored elsewhere makes it count. */
function HomeRootLine({of}: {of: HomeRootNow}) {
  const last = of.recorded;
  if (last === null) {
    return (
      <span class="dim">
        No home root recorded: <code>cortex checkpoint --all</code>
      </span>
    );
  }
  return (
    <span class="dim" title={`home root ${last.root}`}>
      Home root <code>{last.root.slice(0, 16)}</code> covers {last.entries} of {of.entries} entries
      of {last.actors} actors
    </span>
  );
}

function Opened({actors, homeRoot}: {actors: readonly Actor[]; homeRoot?: HomeRootNow}) {
  const {actor: name, what = 'entry', checkpoint} = route.value.query;
  const actor = actors.find((one) => one.actor === name) ?? actors[0] ?? null;
  const checkpoints = useAnswer<Checkpoints>(checkpoint ? '/api/v1/checkpoints' : null);
  const note = checkpoints.value?.items.find((one) => one.origin === checkpoint) ?? null;
  useEffect(() => {
    if (actor && !name) adjust({actor: actor.actor}, false);
  }, [actor, name]);
  return (
    <>
      <header class="screen-head">
        <h1>Evidence</h1>
        <span class="dim">Proofs, recomputed here</span>
        {homeRoot !== undefined && homeRoot.actors > 0 && <HomeRootLine of={homeRoot} />}
      </header>
      <div class="evidence">
        <Split direction="row" name="record and proof" initial={0.27}>
          <Side actors={actors} actor={actor} />
          <Tabs
            label="What to prove"
            tabs={TABS}
            active={what}
            onActive={(id) => adjust({what: id})}
          >
            {what === 'file' ? (
              <OwnFile />
            ) : what === 'auditor' ? (
              <ForAuditor />
            ) : actor === null ? (
              <Empty title="No journals yet">
                <p>
                  <code>cortex demo</code> or <code>cortex record</code> creates records to prove.
                </p>
              </Empty>
            ) : what === 'state' ? (
              <MemoryProof actor={actor} note={note} />
            ) : what === 'growth' ? (
              <GrowthProof actor={actor} note={note} />
            ) : (
              <EntryProof actor={actor} note={note} />
            )}
          </Tabs>
        </Split>
      </div>
    </>
  );
}

export function Evidence() {
  const of = useAnswer<Roots>('/api/v1/roots');
  return (
    <Answer of={of} what="Roots">
      {(roots) => <Opened actors={roots.actors} homeRoot={roots.home_root} />}
    </Answer>
  );
}
