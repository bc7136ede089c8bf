// compare.tsx - two agents, heads or events of one history, or two histories such as runs, aligned
// from where they diverge.
//
//   #/compare/LATTICE?a=NODE&b=NODE&from=ROW            NODE: an id, a hash, #K, or @AGENT for its newest
//   #/compare/LATTICE?with=OTHER[&a=NODE][&b=NODE]      without NODE all of a history, in its order

import type {ComponentChildren} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {segments} from '../../base/api';
import {keyText} from '../../base/focus';
import {count, plural, shortAgent, shortId, time} from '../../base/format';
import {addCommands} from '../../base/keys';
import {useAnswer} from '../../base/load';
import {adjust, go, linkTo, route} from '../../base/router';
import {session} from '../../base/session';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Recent} from '../../ui/recent';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {Short, Value} from '../../ui/value';
import type {NodeRef, Summary} from '../debugger/types';
import {
  firstTwo,
  folded,
  rowWords,
  runOf,
  variance,
  type Comparison,
  type Difference,
  type Side,
  type StepRow,
} from './model';
import {nameWords, OtherRuns, WithWhat} from './others';

const STEPS = 200;

const pathOf = (name: string): string => `/api/v1/view/${segments(name)}`;

export function Compare() {
  const name = route.value.name || 'all';
  const of = useAnswer<Summary>(`${pathOf(name)}/summary`, {}, false);
  if (of.error && !route.value.name)
    return (
      <>
        <header class="screen-head">
          <h1>Compare</h1>
        </header>
        <Recent screen="compare" title="Compare agents or histories: open one" />
      </>
    );
  if (of.error) return <Failed error={of.error} />;
  if (!of.value) return <Loading what="Opening the history" />;
  return <Opened key={name} name={name} summary={of.value} />;
}

/** The two histories, which are mostly one. */
interface Names {
  a: string;
  b: string;
}

function Opened({name, summary}: {name: string; summary: Summary}) {
  const other = route.value.query['with'];
  const otherAnswer = useAnswer<Summary>(other ? `${pathOf(other)}/summary` : null, {}, false);
  const two = other ? null : firstTwo(summary.lanes);
  const {a: chosenA, b: chosenB} = route.value.query;
  const a = chosenA ?? two?.[0],
    b = chosenB ?? two?.[1];
  const isChosen = other !== undefined || (a !== undefined && b !== undefined);
  // A run is compared with other runs by default; two of its branches on request.
  const isOpen =
    runOf(name) !== null && !other && !chosenA && !chosenB && session.value?.repo === true;
  const from = Number(route.value.query['from'] ?? 0) || 0;
  const of = useAnswer<Comparison>(isChosen && !isOpen ? `${pathOf(name)}/compare` : null, {
    a,
    b,
    with: other,
    from,
    max: STEPS,
  });
  const names: Names = {a: name, b: other ?? name};
  useKeys(names, a, b, of.value);
  const otherSummary = other ? otherAnswer.value : summary;
  return (
    <>
      <header class="screen-head compare-head">
        <h1>Compare</h1>
        <a class="dim" href={linkTo('debugger', name)}>
          <Line text={nameWords(name)} most={40} />
        </a>
        {!isOpen && (
          <Choice letter="a" value={a ?? ''} summary={summary} canBeAll={other !== undefined} />
        )}
        {!isOpen && (
          <button
            type="button"
            title="Swap sides (x)"
            aria-label="Swap a and b"
            disabled={!isChosen}
            onClick={() => swap(names, a, b)}
          >
            {'\u21c4'}
          </button>
        )}
        <WithWhat name={name} other={other} />
        {!isOpen && otherSummary && (
          <Choice
            letter="b"
            value={b ?? ''}
            summary={otherSummary}
            canBeAll={other !== undefined}
          />
        )}
        <span class="grow" />
        {!summary.verified && (
          <Badge tone="bad">{other ? 'a is invalid' : 'history is invalid'}</Badge>
        )}
        {other && otherAnswer.value && !otherAnswer.value.verified && (
          <Badge tone="bad">b is invalid</Badge>
        )}
      </header>
      <div class="compare-body">
        {isOpen ? (
          <OtherRuns name={name} two={two} />
        ) : !isChosen ? (
          <Empty title="This history has only one agent">
            <p>
              Choose two events by id, choose another history above, or open{' '}
              <a href={linkTo('compare', 'all')}>all recorded traces</a>.
            </p>
            {session.value?.traces && <Recent screen="compare" title="Open another history" />}
          </Empty>
        ) : otherAnswer.error ? (
          <Failed error={otherAnswer.error} />
        ) : of.error ? (
          <Failed error={of.error} />
        ) : !of.value ? (
          <Loading what="Comparing" />
        ) : (
          <Shown names={names} of={of.value} from={from} />
        )}
      </div>
    </>
  );
}

function swap(names: Names, a: string | undefined, b: string | undefined): void {
  const query: Record<string, string> = {};
  if (b) query['a'] = b;
  if (a) query['b'] = a;
  if (names.a !== names.b) query['with'] = names.a;
  go('compare', names.b, query);
}

function useKeys(
  names: Names,
  a: string | undefined,
  b: string | undefined,
  of: Comparison | null,
): void {
  const to = (row: number | null | undefined, selector: string): void => {
    const shown = document.querySelector<HTMLElement>(selector);
    if (shown) shown.scrollIntoView({block: 'center'});
    else if (row != null) adjust({from: String(Math.max(0, row - 5))});
  };
  useEffect(
    () =>
      addCommands([
        {keys: 'x', what: 'Swap a and b', group: 'Compare', run: () => of && swap(names, a, b)},
        {
          keys: 'f',
          what: 'Go to the first difference',
          group: 'Compare',
          run: () => to(of?.first, '.compare-first'),
        },
        {
          keys: 'w',
          what: 'Go to the divergence point',
          group: 'Compare',
          run: () => to(of?.parted, '.compare-parting'),
        },
        {
          keys: 'd',
          what: 'Open the first difference in the debugger',
          group: 'Compare',
          run: () => {
            const pair = of?.first == null ? undefined : of.steps[of.first - of.from];
            const node = pair?.a ?? pair?.b ?? of?.a;
            if (node) go('debugger', pair && !pair.a ? names.b : names.a, {node: node.id});
          },
        },
      ]),
    [names.a, names.b, a, b, of],
  );
}

/** An agent's newest, or a node that is named. */
function Choice({
  letter,
  value,
  summary,
  canBeAll,
}: {
  letter: 'a' | 'b';
  value: string;
  summary: Summary;
  canBeAll: boolean;
}) {
  const isHead = summary.lanes.some((lane) => `@${lane.agent}` === value);
  const [typing, setTyping] = useState(false);
  const isBack = useRef(false); // the keyboard goes on from the list after the field
  const set = (text: string): void => adjust({[letter]: text || null, from: null});
  if (typing)
    return (
      <input
        class="mono compare-node"
        aria-label={`Node ${letter}`}
        placeholder="id, hash, #K or @AGENT"
        autofocus
        defaultValue={isHead ? '' : value}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.preventDefault();
          event.currentTarget.value = ''; // a field that goes away counts what was typed
          isBack.current = true;
          setTyping(false);
        }}
        onChange={(event) => {
          isBack.current ||= event.currentTarget.matches(':focus'); // Enter; not after Tab
          setTyping(false);
          if (event.currentTarget.value.trim()) set(event.currentTarget.value.trim());
        }}
      />
    );
  return (
    <label class={`compare-choice compare-${letter}`}>
      <span class="compare-letter" aria-hidden="true">
        {letter}
      </span>
      <select
        ref={(at) => {
          if (at && isBack.current) at.focus();
          isBack.current = false;
        }}
        aria-label={`Side ${letter}`}
        value={value}
        onChange={(event) =>
          event.currentTarget.value === '?' ? setTyping(true) : set(event.currentTarget.value)
        }
      >
        {canBeAll && <option value="">whole history</option>}
        {!isHead && value && <option value={value}>{plain(shortId(value), 60)}</option>}
        {summary.lanes
          .filter((lane) => lane.agent !== '?')
          .slice(0, 500)
          .map((lane) => (
            <option key={lane.agent} value={`@${lane.agent}`}>
              {plain(shortAgent(lane.agent), 60)}
            </option>
          ))}
        <option value="?">other event{'\u2026'}</option>
      </select>
    </label>
  );
}

function Moment({name, node, words}: {name: string; node: NodeRef; words: string}) {
  return (
    <a class="compare-moment" href={linkTo('debugger', name, {node: node.id})}>
      <span
        class="lane-mark"
        style={{background: `var(--lane-${node.lane % 8})`}}
        aria-hidden="true"
      />
      <span class="dim">{words}</span>
      <Line text={shortAgent(node.agent)} most={40} />
      <span class="mono dim">{`#${node.seq}`}</span>
      {node.t !== null && <span class="dim">{time(node.t)}</span>}
    </a>
  );
}

/** A summary of the alignment in a sentence. */
function Account({of}: {of: Comparison}) {
  const {alike, only, same} = of.matched;
  if (of.counts[0] + of.counts[1] === 0) return <p>Both sides are the same event.</p>;
  return (
    <p>
      {`${of.common ? 'Since then,' : 'There are'} ${plural(of.counts[0], 'step')} in a and ${count(of.counts[1])} in b: `}
      {of.first === null
        ? 'all identical.'
        : `${count(same)} identical, ${count(alike)} similar with different values, ${count(only[0])} only in a, ${count(only[1])} only in b; ${of.first === 0 ? 'different from the first step on' : `the first ${count(of.first)} identical`}${of.parted === null ? '; every step has a counterpart' : of.parted !== of.first ? `; the histories diverge at row ${count(of.parted + 1)}` : ''}.`}
      {!of.aligned &&
        ' The histories are too long and too different to align: the last steps are paired by number.'}
    </p>
  );
}

function Shown({names, of, from}: {names: Names; of: Comparison; from: number}) {
  const counts = variance(of.diff);
  const name = names.a;
  return (
    <>
      <section class="compare-parted">
        {of.common ? (
          <Moment name={name} node={of.common} words="Common up to" />
        ) : (
          <p class="dim">
            The histories have no common ancestor, so they are aligned from their first steps
            {names.a !== names.b && runOf(names.a) && runOf(names.b)
              ? '; the two run ids count as equal'
              : ''}
            .
          </p>
        )}
        <div class="compare-heads">
          <Moment name={names.a} node={of.a} words="a" />
          <Moment name={names.b} node={of.b} words="b" />
        </div>
        <Account of={of} />
        {of.knowledge
          .filter((one) => one.id !== of.common?.id)
          .map((one) => (
            <Moment key={one.id} name={name} node={one} words="Both include" />
          ))}
      </section>
      <section class="compare-part">
        <h2>
          State differences
          {of.diff.length > 0 && (
            <span class="dim">{` ${count(of.diff.length)}${of.more_diff ? '+' : ''}: ${counts.both} with different values, ${counts.a} only in a, ${counts.b} only in b`}</span>
          )}
        </h2>
        {of.diff.length === 0 ? (
          <p class="dim">None: the states are equal.</p>
        ) : (
          <Differences names={names} of={of} />
        )}
      </section>
      <section class="compare-part">
        <h2>Step by step</h2>
        <Steps names={names} of={of} from={from} />
      </section>
    </>
  );
}

function Differences({names, of}: {names: Names; of: Comparison}) {
  return (
    <div class="compare-scroll" tabIndex={0} role="region" aria-label="Differences">
      <table class="compare-table">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">
              <span class="compare-letter compare-a">a</span>
            </th>
            <th scope="col">
              <span class="compare-letter compare-b">b</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {of.diff.map((one, i) => (
            <DiffRow key={i} names={names} one={one} of={of} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function DiffRow({names, one, of}: {names: Names; one: Difference; of: Comparison}) {
  const [open, setOpen] = useState(false);
  const key = keyText({section: one.section, key: one.key});
  const side = (value: Difference['a'], node: NodeRef, letter: 'a' | 'b') => (
    <td>
      <div class="compare-value">
        {open && value ? <Value value={value} /> : <Short value={value} most={160} />}
        {value && (
          <a
            class="compare-why"
            href={linkTo('debugger', names[letter], {node: node.id, key})}
            aria-label={`Why ${letter} has this value of ${key}`}
          >
            why
          </a>
        )}
      </div>
    </td>
  );
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link mono" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span class="twist" aria-hidden="true">
            {open ? '\u25be' : '\u25b8'}
          </span>
          <Line text={key} most={60} />
        </button>
      </th>
      {side(one.a, of.a, 'a')}
      {side(one.b, of.b, 'b')}
    </tr>
  );
}

function Cell({
  name,
  side,
  children,
}: {
  name: string;
  side: Side | null;
  children?: ComponentChildren;
}) {
  if (!side) return <td class="dim">{'\u2013'}</td>;
  return (
    <td>
      <a href={linkTo('debugger', name, {node: side.id})}>
        <Text text={side.label || `#${side.seq}`} most={90} />
      </a>
      <span class="mono dim">{` #${side.seq}`}</span>
      {children}
    </td>
  );
}

/** Steps that are alike, and which of their values are not. */
function Differing({names}: {names: readonly string[]}) {
  return (
    <span class="compare-differs">
      {names.map((one) => (
        <span key={one} class="mono">
          <Line text={one.replace(/^(memory|beliefs)\./, '')} most={60} />
        </span>
      ))}
    </span>
  );
}

function PairRow({
  row,
  names,
  of,
}: {
  row: Extract<StepRow, {kind: 'pair'}>;
  names: Names;
  of: Comparison;
}) {
  const {pair, index} = row;
  const {words, isFirst} = rowWords(pair, index, of);
  const isParting = index === of.parted;
  return (
    <tr class={`${isFirst ? 'compare-first' : ''} ${isParting ? 'compare-parting' : ''}`}>
      <td class="mono dim">
        {count(index + 1)}{' '}
        {pair.same ? (
          <Icon name="check" label="identical" />
        ) : (
          <span class="compare-how">{words}</span>
        )}
        {isFirst && (
          <Badge tone="warn" icon="fork">
            first difference
          </Badge>
        )}
        {isParting && !isFirst && (
          <Badge tone="warn" icon="fork">
            histories diverge
          </Badge>
        )}
      </td>
      <Cell name={names.a} side={pair.a} />
      <Cell name={names.b} side={pair.b}>
        {pair.differ_count > 0 && (
          <Differing
            names={
              pair.differ_count > pair.differs.length
                ? [...pair.differs, `and ${pair.differ_count - pair.differs.length} more`]
                : pair.differs
            }
          />
        )}
      </Cell>
    </tr>
  );
}

function Steps({names, of, from}: {names: Names; of: Comparison; from: number}) {
  const [unfolded, setUnfolded] = useState(false);
  const most = of.rows;
  const rows: StepRow[] = folded(of.steps, of.from, unfolded ? Infinity : 3);
  if (most === 0) return <p class="dim">No step.</p>;
  return (
    <>
      <div class="compare-scroll" tabIndex={0} role="region" aria-label="Steps">
        <table class="compare-table compare-steps">
          <thead>
            <tr>
              <th scope="col">Row</th>
              <th scope="col">
                <span class="compare-letter compare-a">a</span>
              </th>
              <th scope="col">
                <span class="compare-letter compare-b">b</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) =>
              row.kind === 'same' ? (
                <tr key={row.index} class="compare-same">
                  <td class="mono dim">{count(row.index + 1)}</td>
                  <td colSpan={2}>
                    <button
                      type="button"
                      class="link"
                      onClick={() => setUnfolded(true)}
                    >{`${count(row.count)} identical steps`}</button>
                  </td>
                </tr>
              ) : (
                <PairRow key={row.index} row={row} names={names} of={of} />
              ),
            )}
          </tbody>
        </table>
      </div>
      {most > STEPS && (
        <p class="compare-pages">
          <button
            type="button"
            disabled={from === 0}
            onClick={() =>
              adjust({
                from: String(Math.max(0, from - STEPS)) === '0' ? null : String(from - STEPS),
              })
            }
          >
            Previous
          </button>
          <span class="dim">{`rows ${count(from + 1)} to ${count(Math.min(most, from + STEPS))} of ${count(most)}`}</span>
          <button
            type="button"
            disabled={from + STEPS >= most}
            onClick={() => adjust({from: String(from + STEPS)})}
          >
            Next
          </button>
        </p>
      )}
    </>
  );
}
