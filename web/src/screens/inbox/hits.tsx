// hits.tsx - steps and memories that have the words of the search, with the words marked; a step
// opens its history there, a memory opens in place.

import {useState} from 'preact/hooks';
import {may} from '../../base/session';
import type {MemoryAnswer, SearchHit, SearchPage} from '../../base/api-types';
import {ago, shortAgent} from '../../base/format';
import {useAnswer} from '../../base/load';
import {linkTo} from '../../base/router';
import {Line} from '../../ui/text';
import {divided, kindWords} from '../debugger/talk';
import {seconds} from './items';

const SHOWN = 8;

export function Hits({words}: {words: string}) {
  const hasWord = /[\p{L}\p{N}]/u.test(words);
  const of = useAnswer<SearchPage>(hasWord && may('trace:read') ? '/api/v1/search' : null, {
    q: words,
    limit: SHOWN,
  });
  const hits = of.value?.hits ?? [];
  const before = of.value?.not_searched_before?.slice(0, 10);
  if (hits.length === 0 && !before) return null;
  return (
    <section class="hits" aria-label="Steps with these words">
      <h2>
        {of.value?.next_cursor
          ? `The newest ${SHOWN} steps with these words`
          : 'Steps with these words'}
      </h2>
      <ul>
        {hits.map((hit) => (
          <li key={`${hit.history} ${hit.ref}`}>
            {hit.source === 'memory' ? (
              <MemoryHit hit={hit} words={words} />
            ) : (
              <Hit hit={hit} words={words} />
            )}
          </li>
        ))}
      </ul>
      {before && (
        <p class="dim">
          {`Nothing before ${before} is searched: those rows left the index. The ledger has them.`}
        </p>
      )}
    </section>
  );
}

/** The memory's version, with all of it below once it is opened. */
function MemoryHit({hit, words}: {hit: SearchHit; words: string}) {
  const [open, setOpen] = useState(false);
  const of = useAnswer<MemoryAnswer>(
    open ? `/api/v1/memories/${encodeURIComponent(hit.ref)}` : null,
    {actor: hit.history.slice('memory/'.length)},
  );
  const whole = of.value ? JSON.stringify(of.value, null, 2) : (of.error?.message ?? '');
  return (
    <details class="hit" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Found hit={hit} words={words} />
      </summary>
      <pre class="hit-memory">
        <Marked text={whole} words={words} />
      </pre>
    </details>
  );
}

function Marked({text, words}: {text: string; words: string}) {
  return (
    <>
      {divided(text, words).map((piece, i) => (i % 2 === 1 ? <mark key={i}>{piece}</mark> : piece))}
    </>
  );
}

function Hit({hit, words}: {hit: SearchHit; words: string}) {
  return (
    <a
      class="hit"
      href={linkTo('debugger', hit.history, {
        ...(hit.ref.startsWith('src:~') ? {} : {node: hit.ref}),
        q: words,
        view: 'text',
      })}
    >
      <Found hit={hit} words={words} />
    </a>
  );
}

function Found({hit, words}: {hit: SearchHit; words: string}) {
  const when = seconds(hit.at);
  return (
    <>
      <span class="hit-where dim">
        <Line text={hit.title ?? hit.history} most={60} />
        <span>{`${shortAgent(hit.agent ?? '')} \u00b7 ${hit.tool ?? kindWords({kind: hit.kind} as never)}`}</span>
        <span>{when === null ? '' : ago(when)}</span>
      </span>
      <span class="hit-text">
        {hit.cut_before ? '\u2026' : ''}
        <Marked text={hit.snippet.replace(/\s+/g, ' ')} words={words} />
        {hit.cut_after ? '\u2026' : ''}
      </span>
    </>
  );
}
