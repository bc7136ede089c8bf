// check.tsx - verifies a trace of the user with this server's trusted keys; records nothing.

import type {TraceRows} from '../../base/api-types';
import {useState} from 'preact/hooks';
import {sendText} from '../../base/api';
import {plural} from '../../base/format';
import {useAnswer} from '../../base/load';
import {linkTo} from '../../base/router';
import {Badge} from '../../ui/badge';
import {Answer, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {when} from './model';
import {Refusal, SignedPanel, TONES} from './panels';
import type {Checked, Verdict} from './types';

const BYTES_MAX = 8 << 20;

type State = {checked?: Checked; error?: Error; busy?: boolean};

export function CheckTrace() {
  const [text, setText] = useState('');
  const [state, setState] = useState<State>({});
  const [chosen, setChosen] = useState(0);
  const check = (what: string): void => {
    if (what.length > BYTES_MAX)
      return setState({
        error: new Error('The input is larger than 8 MiB. Check it with: cortex trace verify FILE'),
      });
    setState({busy: true});
    setChosen(0);
    sendText<Checked>('/api/v1/covenant/check', what).then(
      (checked) => {
        setChosen(
          Math.max(
            0,
            checked.results.findIndex((one) => one.verdict !== 'holds'),
          ),
        );
        setState({checked});
      },
      (error: Error) => setState({error}),
    );
  };
  const readFile = (file: File | undefined): void => {
    void file?.text().then((found) => {
      setText(found.slice(0, 20000));
      check(found);
    });
  };
  return (
    <>
      <header class="screen-head">
        <h1>Traces</h1>
      </header>
      <div class="trace-body">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: the input does the same without a mouse */}
        <div
          class="trace-main"
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault();
            readFile(event.dataTransfer?.files[0]);
          }}
        >
          <section class="trace-ask">
            <h2>Check a trace</h2>
            <p class="dim">
              Paste a trace or a batch, or drop a file here. It is verified with the keys that this
              server trusts; nothing is recorded.
            </p>
            <label class="sr" for="trace-text">
              Trace as JSON
            </label>
            <textarea
              id="trace-text"
              rows={6}
              spellcheck={false}
              placeholder={'{"trace_id": \u2026'}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
            <div class="trace-row">
              <button
                type="button"
                class="primary"
                disabled={text.trim() === '' || state.busy}
                onClick={() => check(text)}
              >
                Check
              </button>
              <label class="trace-file">
                or choose a file{' '}
                <input
                  type="file"
                  accept=".json,application/json"
                  onChange={(event) => readFile(event.currentTarget.files?.[0])}
                />
              </label>
            </div>
          </section>
          {state.busy && <Loading what="Checking" />}
          {state.error && <Failed error={state.error} />}
          {state.checked && (
            <Results checked={state.checked} chosen={chosen} onChosen={setChosen} />
          )}
        </div>
        <aside class="trace-side">
          <Newest />
        </aside>
      </div>
    </>
  );
}

function Results({
  checked,
  chosen,
  onChosen,
}: {
  checked: Checked;
  chosen: number;
  onChosen(index: number): void;
}) {
  const one = checked.results[chosen];
  const bad = checked.results.filter((result) => result.verdict !== 'holds').length;
  return (
    <section class="trace-results" aria-live="polite">
      <p class="state-title">
        {bad === 0
          ? `${plural(checked.results.length, 'trace')}: ${checked.results.length === 1 ? 'verified' : 'all verified'}`
          : `${bad} of ${plural(checked.results.length, 'trace')} failed verification`}
        {checked.left_out > 0 && `; ${plural(checked.left_out, 'more')} not checked`}
      </p>
      {checked.results.length > 1 && (
        <ul class="trace-list">
          {checked.results.map((result, i) => (
            <li key={i}>
              <button
                type="button"
                class="trace-pick"
                aria-pressed={i === chosen}
                onClick={() => onChosen(i)}
              >
                <Verdicted verdict={result} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {one && (
        <>
          <Refusal verdict={one} />
          <SignedPanel verdict={one} />
          {one.trace_id && one.verdict === 'holds' && (
            <p>
              <a href={linkTo('trace', one.trace_id)}>Open the recorded trace</a>
            </p>
          )}
        </>
      )}
    </section>
  );
}

function Verdicted({verdict}: {verdict: Verdict}) {
  return (
    <>
      <Badge tone={TONES[verdict.verdict]}>{verdict.verdict}</Badge>
      <span class="mono">
        <Line text={verdict.trace_id ?? 'without an id'} most={60} />
      </span>
      {verdict.reason && <span class="dim">{verdict.reason.replaceAll('_', ' ')}</span>}
    </>
  );
}

function Newest() {
  const of = useAnswer<TraceRows>('/api/v1/covenant/traces', {limit: 30});
  return (
    <section class="trace-panel">
      <header>
        <h2>Newest traces</h2>
        <a href={linkTo('inbox')}>all</a>
      </header>
      <Answer of={of} what="Traces">
        {(found) =>
          found.traces.length === 0 ? (
            <p class="dim">No traces yet.</p>
          ) : (
            <ul class="trace-list">
              {found.traces.map((row) => (
                <li key={row.agent_id_hash + row.trace_id}>
                  <a
                    class="trace-pick"
                    href={linkTo('trace', row.trace_id, {agent: row.agent_id_hash})}
                  >
                    <span class="mono">
                      <Line text={row.trace_id} most={48} />
                    </span>
                    <span class="dim">{when(row.timestamp).slice(0, 16)}</span>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </section>
  );
}
