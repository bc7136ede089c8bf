// compare.tsx - two agents, heads or moments of one history, side by side from where they parted.
//
//   #/compare/LATTICE?a=NODE&b=NODE&from=STEP     NODE: an id, a hash, #K, or @AGENT for its newest

import {useEffect, useState} from 'preact/hooks';
import {segments} from '../../base/api';
import {keyText} from '../../base/focus';
import {count, plural, shortAgent, shortId, time} from '../../base/format';
import {addCommands} from '../../base/keys';
import {useAnswer} from '../../base/load';
import {adjust, go, linkTo, route} from '../../base/router';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {Short, Value} from '../../ui/value';
import type {NodeRef, Summary} from '../debugger/types';
import {firstTwo, folded, variance, type Comparison, type Difference, type Side, type StepRow} from './model';

const STEPS = 200;

export function Compare() {
  const name = route.value.name || 'all';
  const path = `/api/v1/view/${segments(name)}`;
  const of = useAnswer<Summary>(`${path}/summary`, {}, false);
  if (of.error) return <Failed error={of.error} />;
  if (!of.value) return <Loading what="Opening the history" />;
  return <Opened key={name} name={name} path={path} summary={of.value} />;
}

function Opened({name, path, summary}: {name: string; path: string; summary: Summary}) {
  const two = firstTwo(summary.lanes);
  const a = route.value.query['a'] ?? two?.[0], b = route.value.query['b'] ?? two?.[1];
  const from = Number(route.value.query['from'] ?? 0) || 0;
  const of = useAnswer<Comparison>(a && b ? `${path}/compare` : null, {a, b, from, max: STEPS});
  useKeys(name, a, b, of.value);
  return (
    <>
      <header class="screen-head compare-head">
        <h1>Compare</h1>
        <a class="dim" href={linkTo('debugger', name)}><Line text={shortAgent(name)} most={40} /></a>
        <Choice letter="a" value={a ?? ''} summary={summary} />
        <button type="button" title="The other way round (x)" aria-label="Swap a and b" disabled={!a || !b} onClick={() => adjust({a: b, b: a})}>{'\u21c4'}</button>
        <Choice letter="b" value={b ?? ''} summary={summary} />
        <span class="grow" />
        {!summary.verified && <Badge tone="bad">the history does not hold</Badge>}
      </header>
      <div class="compare-body">
        {!a || !b ? <Empty title="There is only one agent here"><p>Choose two moments by their ids, or look at <a href={linkTo('compare', 'all')}>everything that is recorded</a>.</p></Empty>
          : of.error ? <Failed error={of.error} />
            : !of.value ? <Loading what="Comparing" />
              : <Shown name={name} of={of.value} from={from} />}
      </div>
    </>
  );
}

function useKeys(name: string, a: string | undefined, b: string | undefined, of: Comparison | null): void {
  useEffect(() => addCommands([
    {keys: 'x', what: 'Swap a and b', group: 'Compare', run: () => a && b && adjust({a: b, b: a})},
    {keys: 'f', what: 'To the first difference', group: 'Compare', run: () => {
      const row = document.querySelector<HTMLElement>('.compare-first');
      if (row) row.scrollIntoView({block: 'center'});
      else if (of?.first != null) adjust({from: String(Math.max(0, of.first - 5))});
    }},
    {keys: 'd', what: 'The first difference in the debugger', group: 'Compare', run: () => {
      const pair = of?.first == null ? undefined : of.steps[of.first - of.from];
      const node = pair?.a ?? pair?.b ?? of?.a;
      if (node) go('debugger', name, {node: node.id});
    }},
  ]), [name, a, b, of]);
}

/** An agent's newest, or a node that is named. */
function Choice({letter, value, summary}: {letter: 'a' | 'b'; value: string; summary: Summary}) {
  const isHead = summary.lanes.some((lane) => `@${lane.agent}` === value);
  const [typing, setTyping] = useState(false);
  const set = (text: string): void => adjust({[letter]: text, from: null});
  if (typing)
    return (
      <input class="mono compare-node" aria-label={`Node ${letter}`} placeholder="id, hash, #K or @AGENT" autofocus defaultValue={isHead ? '' : value}
             onKeyDown={(event) => event.key === 'Escape' && setTyping(false)}
             onChange={(event) => {
               setTyping(false);
               if (event.currentTarget.value.trim()) set(event.currentTarget.value.trim());
             }} />
    );
  return (
    <label class={`compare-choice compare-${letter}`}>
      <span class="compare-letter" aria-hidden="true">{letter}</span>
      <select aria-label={`Side ${letter}`} value={value} onChange={(event) => (event.currentTarget.value === '?' ? setTyping(true) : set(event.currentTarget.value))}>
        {!isHead && value && <option value={value}>{shortId(value)}</option>}
        {summary.lanes.filter((lane) => lane.agent !== '?').slice(0, 500).map((lane) => <option key={lane.agent} value={`@${lane.agent}`}>{shortAgent(lane.agent).slice(0, 60)}</option>)}
        <option value="?">a moment{'\u2026'}</option>
      </select>
    </label>
  );
}

function Moment({name, node, words}: {name: string; node: NodeRef; words: string}) {
  return (
    <a class="compare-moment" href={linkTo('debugger', name, {node: node.id})}>
      <span class="lane-mark" style={{background: `var(--lane-${node.lane % 8})`}} aria-hidden="true" />
      <span class="dim">{words}</span>
      <Line text={shortAgent(node.agent)} most={40} /><span class="mono dim">{`#${node.seq}`}</span>
      {node.t !== null && <span class="dim">{time(node.t)}</span>}
    </a>
  );
}

function Shown({name, of, from}: {name: string; of: Comparison; from: number}) {
  const counts = variance(of.diff);
  return (
    <>
      <section class="compare-parted">
        {of.common ? <Moment name={name} node={of.common} words="Common until" />
          : <p class="dim">They have no common ancestor: each began by itself, so their first steps stand beside each other.</p>}
        <div class="compare-heads"><Moment name={name} node={of.a} words="a" /><Moment name={name} node={of.b} words="b" /></div>
        <p>{of.counts[0] + of.counts[1] === 0 ? 'Both are the same moment.' : `Since then ${plural(of.counts[0], 'step')} of a and ${count(of.counts[1])} of b; ${of.first === null ? 'all of them the same.' : of.first === 0 ? 'different from the first on.' : `the first ${count(of.first)} the same.`}`}</p>
        {of.knowledge.filter((one) => one.id !== of.common?.id).map((one) => <Moment key={one.id} name={name} node={one} words="Both knew of" />)}
      </section>
      <section class="compare-part">
        <h2>What they know differently{of.diff.length > 0 && <span class="dim">{` ${count(of.diff.length)}${of.more_diff ? ' and more' : ''}: ${counts.both} with other values, ${counts.a} only in a, ${counts.b} only in b`}</span>}</h2>
        {of.diff.length === 0 ? <p class="dim">Nothing: their states are equal.</p> : <Differences name={name} of={of} />}
      </section>
      <section class="compare-part">
        <h2>Step by step</h2>
        <Steps name={name} of={of} from={from} />
      </section>
    </>
  );
}

function Differences({name, of}: {name: string; of: Comparison}) {
  return (
    <div class="compare-scroll" tabIndex={0} role="region" aria-label="Differences">
      <table class="compare-table">
        <thead><tr><th scope="col">Key</th><th scope="col"><span class="compare-letter compare-a">a</span></th><th scope="col"><span class="compare-letter compare-b">b</span></th></tr></thead>
        <tbody>{of.diff.map((one, i) => <DiffRow key={i} name={name} one={one} of={of} />)}</tbody>
      </table>
    </div>
  );
}

function DiffRow({name, one, of}: {name: string; one: Difference; of: Comparison}) {
  const [open, setOpen] = useState(false);
  const key = keyText({section: one.section, key: one.key});
  const side = (value: Difference['a'], node: NodeRef, letter: string) => (
    <td><div class="compare-value">
      {open && value ? <Value value={value} /> : <Short value={value} most={160} />}
      {value && <a class="compare-why" href={linkTo('debugger', name, {node: node.id, key})} aria-label={`Why ${letter} has this value of ${key}`}>why</a>}
    </div></td>
  );
  return (
    <tr>
      <th scope="row"><button type="button" class="link mono" aria-expanded={open} onClick={() => setOpen(!open)}><span class="twist" aria-hidden="true">{open ? '\u25be' : '\u25b8'}</span><Line text={key} most={60} /></button></th>
      {side(one.a, of.a, 'a')}{side(one.b, of.b, 'b')}
    </tr>
  );
}

function Cell({name, side}: {name: string; side: Side | null}) {
  if (!side) return <td class="dim">{'\u2013'}</td>;
  return (
    <td>
      <a href={linkTo('debugger', name, {node: side.id})}><Text text={side.label || `#${side.seq}`} most={90} /></a>
      <span class="mono dim">{` #${side.seq}`}</span>
    </td>
  );
}

function Steps({name, of, from}: {name: string; of: Comparison; from: number}) {
  const [unfolded, setUnfolded] = useState(false);
  const most = Math.max(...of.counts);
  const rows: StepRow[] = folded(of.steps, of.from, unfolded ? Infinity : 3);
  if (most === 0) return <p class="dim">There is none.</p>;
  return (
    <>
      <div class="compare-scroll" tabIndex={0} role="region" aria-label="Steps">
        <table class="compare-table compare-steps">
          <thead><tr><th scope="col">Step</th><th scope="col"><span class="compare-letter compare-a">a</span></th><th scope="col"><span class="compare-letter compare-b">b</span></th></tr></thead>
          <tbody>
            {rows.map((row) => row.kind === 'same'
              ? <tr key={row.index} class="compare-same"><td class="mono dim">{count(row.index + 1)}</td><td colSpan={2}><button type="button" class="link" onClick={() => setUnfolded(true)}>{`${count(row.count)} steps the same`}</button></td></tr>
              : (
                <tr key={row.index} class={row.index === of.first ? 'compare-first' : ''}>
                  <td class="mono dim">{count(row.index + 1)}{row.index === of.first && <Badge tone="warn" icon="fork">first difference</Badge>}{row.pair.same && <Icon name="check" label="the same" />}</td>
                  <Cell name={name} side={row.pair.a} /><Cell name={name} side={row.pair.b} />
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      {most > STEPS && (
        <p class="compare-pages">
          <button type="button" disabled={from === 0} onClick={() => adjust({from: String(Math.max(0, from - STEPS)) === '0' ? null : String(from - STEPS)})}>Before</button>
          <span class="dim">{`steps ${count(from + 1)} to ${count(Math.min(most, from + STEPS))} of ${count(most)}`}</span>
          <button type="button" disabled={from + STEPS >= most} onClick={() => adjust({from: String(from + STEPS)})}>Behind</button>
        </p>
      )}
    </>
  );
}
