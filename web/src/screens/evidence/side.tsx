// side.tsx - the actor: its current roots, snapshots, checkpoints, and the trust anchors.

import {useState} from 'preact/hooks';
import {count, shortAgent, time} from '../../base/format';
import {saveAs} from '../../base/save';
import {plain} from '../../base/text';
import {adjust, route} from '../../base/router';
import {useAnswer, type Loaded} from '../../base/load';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer} from '../../ui/states';
import {Digest, Line} from '../../ui/text';
import {addTrusted, dropTrusted, trusted} from './trust';
import type {Actor, Checkpoints, Snapshots} from './types';

function Roots({actor}: {actor: Actor}) {
  const rows: [string, string][] = [
    ['overall', actor.overall_root],
    ['journal', actor.journal_root],
    ['memories', actor.memories_root],
    ['edges', actor.edges_root],
  ];
  return (
    <dl class="roots">
      {rows.map(([name, root]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{/^0+$/.test(root) ? 'empty' : <Digest text={root} what="Root" />}</dd>
        </div>
      ))}
    </dl>
  );
}

function SnapshotList({of}: {of: Loaded<Snapshots>}) {
  const at = route.value.query['at'] ?? '';
  return (
    <Answer of={of} what="Snapshots">
      {(found) =>
        found.items.length === 0 ? (
          <p class="dim">
            None. <code>cortex snapshot make</code> takes a snapshot of the current state so that it
            can be proven later.
          </p>
        ) : (
          <ul class="snapshots">
            {found.items.map((one) => (
              <li key={one.snapshot}>
                <button
                  type="button"
                  class="snapshot"
                  aria-pressed={at === String(one.snapshot)}
                  onClick={() =>
                    adjust({
                      what: 'state',
                      at: at === String(one.snapshot) ? null : String(one.snapshot),
                    })
                  }
                >
                  <span class="mono">{`#${one.snapshot}`}</span>
                  <span>{time(Math.floor(one.created_ns / 1e9))}</span>
                  {one.sealed && (
                    <Badge
                      tone="info"
                      icon="lock"
                      title={`signed by ${one.signed_by ?? 'an unknown key'}`}
                    >
                      sealed
                    </Badge>
                  )}
                  <span class="dim">{`${count(one.journal_size)} entries, ${count(one.live_memories)} memories`}</span>
                </button>
              </li>
            ))}
            {found.count > found.items.length && (
              <li class="dim">
                {`and ${count(found.count - found.items.length)} older ones: `}
                <code>cortex snapshot list</code>
              </li>
            )}
          </ul>
        )
      }
    </Answer>
  );
}

function CheckpointList({of}: {of: Loaded<Checkpoints>}) {
  const chosen = route.value.query['checkpoint'] ?? '';
  return (
    <Answer of={of} what="Checkpoints">
      {(found) =>
        found.items.length === 0 ? (
          <p class="dim">
            None. <code>cortex checkpoint --sign KEY</code> creates a checkpoint that others can
            keep.
          </p>
        ) : (
          <ul class="snapshots">
            {found.items.map((one) => (
              <li key={one.origin} class="checkpoint">
                <button
                  type="button"
                  class="snapshot"
                  aria-pressed={chosen === one.origin}
                  onClick={() => adjust({checkpoint: chosen === one.origin ? null : one.origin})}
                >
                  <Line class="snapshot-name" text={one.origin} most={60} />
                  <span class="dim">{`${count(one.size)} entries, root ${one.root.slice(0, 10)}`}</span>
                </button>
                <button
                  type="button"
                  class="quiet"
                  aria-label={`Save the checkpoint of ${plain(one.origin, 80)}`}
                  title="Save the checkpoint elsewhere: it shows later that no earlier entry was changed"
                  onClick={() =>
                    saveAs(
                      new Blob([one.note], {type: 'text/plain'}),
                      one.origin.replace(/[^A-Za-z0-9.-]+/g, '-').slice(0, 80) + '.checkpoint',
                    )
                  }
                >
                  <Icon name="out" />
                </button>
              </li>
            ))}
          </ul>
        )
      }
    </Answer>
  );
}

function Trust() {
  const [text, setText] = useState('');
  const [why, setWhy] = useState('');
  const add = (event: Event): void => {
    event.preventDefault();
    try {
      addTrusted(text);
      setText('');
      setWhy('');
    } catch (error) {
      setWhy((error as Error).message);
    }
  };
  return (
    <form class="trust" onSubmit={add}>
      <label for="trust-line">Trusted key or root, obtained out of band</label>
      <div class="trust-row">
        <input
          id="trust-line"
          value={text}
          placeholder="name+id+key or root"
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
          aria-invalid={why !== ''}
          aria-describedby="trust-why"
        />
        <button type="submit" disabled={text.trim() === ''}>
          Trust
        </button>
      </div>
      <p id="trust-why" class="trust-why" role={why ? 'alert' : undefined}>
        {why}
      </p>
      <ul>
        {trusted.value.lines.map((line) => (
          <li key={line}>
            <Line class="mono" text={line} most={40} />
            <button
              type="button"
              class="quiet"
              aria-label={`Remove ${line.slice(0, 20)}`}
              onClick={() => dropTrusted(line)}
            >
              {'\u00d7'}
            </button>
          </li>
        ))}
      </ul>
    </form>
  );
}

export function Side({actors, actor}: {actors: readonly Actor[]; actor: Actor | null}) {
  const snapshots = useAnswer<Snapshots>(actor ? '/api/v1/snapshots' : null, {actor: actor?.actor});
  const checkpoints = useAnswer<Checkpoints>('/api/v1/checkpoints');
  return (
    <div class="evidence-side">
      <section>
        <label for="evidence-actor">Actor</label>
        <select
          id="evidence-actor"
          value={actor?.actor ?? ''}
          onChange={(event) =>
            adjust({actor: event.currentTarget.value, at: null, uri: null, seq: null})
          }
        >
          {actors.map((one) => (
            <option
              key={one.actor}
              value={one.actor}
            >{`${plain(shortAgent(one.actor), 80)} \u2013 ${count(one.journal_size)}`}</option>
          ))}
        </select>
        {actor && (
          <p class="dim">
            <Line text={actor.actor} most={90} />
            {`, ${count(actor.journal_size)} entries, ${actor.scheme}`}
          </p>
        )}
        {actor && <Roots actor={actor} />}
      </section>
      <section>
        <h2>Snapshots</h2>
        <SnapshotList of={snapshots} />
      </section>
      <section>
        <h2>Checkpoints</h2>
        <CheckpointList of={checkpoints} />
      </section>
      <section>
        <h2>Trusted keys and roots</h2>
        <Trust />
      </section>
    </div>
  );
}
