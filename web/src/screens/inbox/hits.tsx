// hits.tsx - steps that have the words of the search, with the words marked; each opens its history
// at the step.

import {may} from '../../base/session';
import type {SearchHit, SearchPage} from '../../base/api-types';
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
  if (hits.length === 0) return null;
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
            <Hit hit={hit} words={words} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Hit({hit, words}: {hit: SearchHit; words: string}) {
  const when = seconds(hit.at);
  return (
    <a
      class="hit"
      href={linkTo('debugger', hit.history, {
        ...(hit.ref.startsWith('src:~') ? {} : {node: hit.ref}),
        q: words,
        view: 'text',
      })}
    >
      <span class="hit-where dim">
        <Line text={hit.title ?? hit.history} most={60} />
        <span>{`${shortAgent(hit.agent ?? '')} \u00b7 ${hit.tool ?? kindWords({kind: hit.kind} as never)}`}</span>
        <span>{when === null ? '' : ago(when)}</span>
      </span>
      <span class="hit-text">
        {hit.cut_before ? '\u2026' : ''}
        {divided(hit.snippet.replace(/\s+/g, ' '), words).map((piece, i) =>
          i % 2 === 1 ? <mark key={i}>{piece}</mark> : piece,
        )}
        {hit.cut_after ? '\u2026' : ''}
      </span>
    </a>
  );
}
