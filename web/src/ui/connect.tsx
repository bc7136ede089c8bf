// connect.tsx - how records get here: each way with the lines to copy, and a tick when the first
// record of that kind has arrived.

import {useEffect, useState} from 'preact/hooks';
import {get} from '../base/api';
import type {InboxFacets, Session} from '../base/api-types';
import {count} from '../base/format';
import {connectIsOpen} from '../base/keys';
import {go} from '../base/router';
import {session} from '../base/session';
import {Dialog} from './dialog';
import {Icon} from './icon';
import {copy} from './toast';

const ASK_MS = 2000;

interface Way {
  id: string;
  title: string;
  words: string;
  /** One block to copy each. */
  lines: readonly string[];
  /** What arrives, in words. */
  what: string;
  /** Sources of the inbox whose records have come this way. */
  sources: readonly string[];
}

/** A path within single quotes of a shell. */
const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`;

/** The ways of this server; `origin` is the page's own address. */
export function waysOf(who: Session, origin: string): Way[] {
  const token = who.token_file === null ? '$CORTEX_TOKEN' : `$(cat ${quoted(who.token_file)})`;
  const variables = `export CORTEX_URL=${origin}\nexport CORTEX_TOKEN="${token}"`;
  const ways: Way[] = [
    {
      id: 'sessions',
      title: 'Claude Code, Codex and other coding agents',
      words:
        'Sessions in ~/.claude/projects, ~/.codex/sessions and the folders of ten more agents, while they are written. cortex up does this by itself.',
      lines: ['cortex watch'],
      what: 'from sessions',
      sources: [
        'claude-code',
        'codex',
        'gemini-cli',
        'qwen-code',
        'cursor',
        'copilot-cli',
        'opencode',
        'cline',
        'droid',
        'aider',
        'openhands',
      ],
    },
    {
      id: 'otel',
      title: 'OpenTelemetry',
      words:
        who.otlp_url === null
          ? 'This server receives no OTLP: its port was in use, or --otlp is off. Start it with:'
          : 'Set these for an instrumented program; spans and logs come by OTLP over HTTP.',
      lines:
        who.otlp_url === null
          ? ['cortex up --otlp 127.0.0.1:0']
          : [
              `export OTEL_EXPORTER_OTLP_ENDPOINT=${who.otlp_url}\nexport OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`,
            ],
      what: 'from OpenTelemetry',
      sources: ['otel'],
    },
    {
      id: 'steps',
      title: 'One step with curl',
      words: 'What any program can send: who did what, and what changed.',
      lines: [
        `curl -sS ${origin}/api/v1/steps -H "Authorization: Bearer ${token}" -H 'Content-Type: application/json' -d '{"steps":[{"agent":"me","event":{"kind":"note","text":"hello"}}]}'`,
      ],
      what: 'from steps',
      sources: ['steps'],
    },
    {
      id: 'python',
      title: 'Python',
      words: 'From a checkout of Cortex; the package is in no registry.',
      lines: [
        `pip install ./sdk/python\n${variables}`,
        'import cortex_recorder as cortex\ncx = cortex.init(agent="me")\nwith cx.step("hello") as s:\n    s.set("memory/greeting", "hello")\ncx.flush()',
      ],
      what: 'from steps',
      sources: ['steps'],
    },
    {
      id: 'typescript',
      title: 'TypeScript',
      words: 'From a checkout of Cortex; the package is in no registry.',
      lines: [
        `npm install ./sdk/typescript\n${variables}`,
        "import * as cortex from '@cortex/recorder';\nconst cx = cortex.init({agent: 'me'});\nawait cx.step('hello', async (s) => s.set('memory/greeting', 'hello'));\nawait cx.flush();",
      ],
      what: 'from steps',
      sources: ['steps'],
    },
    {
      id: 'demo',
      title: 'Sample data',
      words: 'Records a sample project in a data directory of its own, and opens its page.',
      lines: ['cortex demo demo && cortex up --home demo/home --no-watch'],
      what: '',
      sources: [],
    },
  ];
  return ways;
}

/** Records by source, asked for again while it is shown. */
function useReceived(): Record<string, number> {
  const [counts, setCounts] = useState<Record<string, number>>({});
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const ask = async (): Promise<void> => {
      try {
        if (!document.hidden) {
          const found = await get<InboxFacets>('/api/v1/inbox/facets', {}, abort.signal);
          const values = found.facets['source']?.values ?? [];
          setCounts(Object.fromEntries(values.map((one) => [one.value, one.count])));
        }
      } catch {
        // The server may be on its way down or up: the next time.
      }
      if (!abort.signal.aborted) timer = window.setTimeout(() => void ask(), ASK_MS);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return counts;
}

function Block({text, what}: {text: string; what: string}) {
  return (
    <div class="connect-block">
      <pre tabIndex={0} role="region" aria-label={`Commands: ${what}`}>
        {text}
      </pre>
      <button type="button" aria-label={`Copy: ${what}`} onClick={() => copy(text, what)}>
        Copy
      </button>
    </div>
  );
}

/** The card: all ways. */
export function Connect() {
  const counts = useReceived();
  const who = session.value;
  if (!who) return null;
  return (
    <div class="connect">
      {waysOf(who, location.origin).map((way) => {
        const received = way.sources.reduce((sum, source) => sum + (counts[source] ?? 0), 0);
        return (
          <section key={way.id} data-way={way.id}>
            <header>
              <h3>{way.title}</h3>
              {way.sources.length > 0 && (
                <span class={received > 0 ? 'connect-received' : 'dim'} role="status">
                  {received > 0 && <Icon name="check" />}
                  {received > 0
                    ? `received: ${count(received)} ${way.what}`
                    : 'nothing received yet'}
                </span>
              )}
            </header>
            <p>{way.words}</p>
            {way.lines.map((text, i) => (
              <Block
                key={i}
                text={text}
                what={way.lines.length > 1 ? `${way.title}, part ${i + 1}` : way.title}
              />
            ))}
          </section>
        );
      })}
    </div>
  );
}

export function ConnectDialog() {
  return (
    <Dialog
      isOpen={connectIsOpen}
      title="Connect an agent"
      buttons={
        <button
          type="button"
          onClick={() => {
            connectIsOpen.value = false;
            go('inbox');
          }}
        >
          Show the inbox
        </button>
      }
    >
      <Connect />
    </Dialog>
  );
}
