// others.tsx - candidates to compare with: other runs for a run, other agents for an agent.

import type {Histories, RunItems} from '../../base/api-types';
import {ago, shortAgent, shortId} from '../../base/format';
import {useAnswer} from '../../base/load';
import {adjust, linkTo, route} from '../../base/router';
import {session} from '../../base/session';
import {Badge} from '../../ui/badge';
import {plain} from '../../base/text';
import {Answer, Empty} from '../../ui/states';
import {Line} from '../../ui/text';
import {seconds, statusTone} from '../run/types';
import {runOf} from './model';

export function nameWords(name: string): string {
  const run = runOf(name);
  return run
    ? `${shortId(run)}${name.slice(4 + run.length)}`
    : name === 'all'
      ? 'all recorded traces'
      : shortAgent(name);
}

/** Lists candidates for the other side: the newest 50 runs, and recorded histories. */
function useOthers(name: string): {name: string; words: string}[] {
  const isFile = session.value?.file !== null && session.value?.file !== undefined;
  const runs = useAnswer<RunItems>(session.value?.repo ? '/api/v1/runs' : null, {
    limit: 50,
  });
  const histories = useAnswer<Histories>(isFile ? null : '/api/v1/view', {});
  return [
    ...(runs.value?.items ?? []).map((one) => ({
      name: `run/${one.run_id}`,
      words: `${plain(one.task_id || 'run', 40)}, ${plain(one.status, 20).toLowerCase()}, ${shortId(one.run_id)}`,
    })),
    ...(histories.value?.histories ?? []).map((one) => ({
      name: one.name,
      words: plain(shortAgent(one.name), 80),
    })),
  ].filter((one) => one.name !== name);
}

/** The choice in the head. */
export function WithWhat({name, other}: {name: string; other: string | undefined}) {
  const others = useOthers(name);
  if (others.length === 0 && !other) return null;
  const isListed = !other || others.some((one) => one.name === other);
  return (
    <label class="compare-choice">
      <span class="dim">with</span>
      <select
        aria-label="With"
        value={other ?? ''}
        onChange={(event) =>
          adjust({
            with: event.currentTarget.value || null,
            b: null,
            from: null,
            ...(other ? {} : {a: null}),
          })
        }
      >
        <option value="">
          {runOf(name) && route.value.query['a'] === undefined ? 'choose\u2026' : 'itself'}
        </option>
        {!isListed && other && <option value={other}>{plain(nameWords(other), 80)}</option>}
        {others.map((one) => (
          <option key={one.name} value={one.name}>
            {one.words.slice(0, 80)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Where nothing is chosen yet: other runs, newest first. */
export function OtherRuns({name, two}: {name: string; two: [string, string] | null}) {
  const runs = useAnswer<RunItems>('/api/v1/runs', {limit: 50});
  const own = runOf(name);
  return (
    <section class="compare-part">
      <h2>Choose a run to compare with</h2>
      <Answer of={runs} what="Runs">
        {(found) => {
          const others = found.items.filter((one) => one.run_id !== own);
          if (others.length === 0)
            return (
              <Empty title="No other run">
                <p>
                  Comparing aligns two runs event by event, for example two runs of one contract.
                </p>
              </Empty>
            );
          return (
            <ul class="compare-runs">
              {others.map((one) => (
                <li key={one.run_id}>
                  <a href={linkTo('compare', name, {with: `run/${one.run_id}`})}>
                    <Badge tone={statusTone(one.status)}>
                      {plain(one.status, 20).toLowerCase()}
                    </Badge>
                    <Line text={one.task_id || one.run_id} most={60} />
                    <span class="mono dim">{shortId(one.run_id)}</span>
                    {Number.isFinite(seconds(one.created_at)) && (
                      <span class="dim">{ago(seconds(one.created_at))}</span>
                    )}
                  </a>
                </li>
              ))}
            </ul>
          );
        }}
      </Answer>
      {two && (
        <p>
          <a href={linkTo('compare', name, {a: two[0], b: two[1]})}>
            Compare two branches of this run
          </a>
        </p>
      )}
    </section>
  );
}
