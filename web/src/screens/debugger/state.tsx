// state.tsx - the agent's state at the event in focus: a tree, loaded level by level, with this
// event's changes highlighted.

import {signal} from '@preact/signals';
import {useMemo, useState} from 'preact/hooks';
import {focus, focusKey, type Section} from '../../base/focus';
import {count} from '../../base/format';
import {get} from '../../base/api';
import {useAnswer} from '../../base/load';
import {Answer, Empty} from '../../ui/states';
import {Line} from '../../ui/text';
import {Short, Value} from '../../ui/value';
import type {Model} from './model';
import {NeedsWhole} from './part';
import type {Entry, Level} from './types';

// Which branches are open holds from node to node: that is how change is watched.
const open = signal<ReadonlySet<string>>(new Set(['/memory', '/beliefs']));

function toggle(pointer: string): void {
  const next = new Set(open.value);
  if (!next.delete(pointer)) next.add(pointer);
  open.value = next;
}

export function escapePointer(key: string): string {
  return key.replace(/~/g, '~0').replace(/\//g, '~1');
}

export function StatePane({model}: {model: Model}) {
  const node = model.detail.value;
  const [filter, setFilter] = useState('');
  if (!node) return <Empty title="No event selected" />;
  if (model.part) return <NeedsWhole model={model} what="The state" />;
  return (
    <div class="state">
      <div class="pane-tools">
        <input
          type="search"
          placeholder="Filter keys"
          aria-label="Filter keys"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <span class="dim">after this event</span>
      </div>
      <LevelView model={model} n={node.n} pointer="" depth={0} filter={filter.toLowerCase()} />
    </div>
  );
}

function LevelView({
  model,
  n,
  pointer,
  depth,
  filter,
}: {
  model: Model;
  n: number;
  pointer: string;
  depth: number;
  filter: string;
}) {
  const of = useAnswer<Level>(`${model.path}/values`, {node: '#' + n, pointer});
  const more = useMemo(() => signal<Entry[]>([]), [n, pointer]);
  const [isDone, setDone] = useState(false);
  // Inside of a tree only its items may stand, also while one is on its way.
  if (depth > 0 && of.value === null && of.error === null)
    return (
      <div role="treeitem" aria-busy="true" class="state-loading">
        {'Loading the state\u2026'}
      </div>
    );
  return (
    <Answer of={of} what="Loading the state">
      {(level) => {
        const entries = [...level.entries, ...more.value];
        const shown =
          filter && depth > 0
            ? entries.filter((entry) => depth > 1 || entry.key.toLowerCase().includes(filter))
            : entries;
        if (level.value)
          return (
            <div class="state-leaf" style={{paddingLeft: `${depth * 14 + 8}px`}}>
              <Value value={level.value} />
            </div>
          );
        const rows = (
          <>
            {shown.map((entry) => (
              <EntryRow
                key={entry.key}
                model={model}
                n={n}
                entry={entry}
                depth={depth}
                filter={filter}
                pointer={`${pointer}/${escapePointer(entry.key)}`}
              />
            ))}
            {level.more && !isDone && (
              <button
                type="button"
                class="more"
                onClick={() => {
                  void get<Level>(`${model.path}/values`, {
                    node: '#' + n,
                    pointer,
                    after: entries[entries.length - 1]?.key,
                  }).then((next) => {
                    more.value = [...more.value, ...next.entries];
                    setDone(!next.more);
                  });
                }}
              >
                more keys
              </button>
            )}
          </>
        );
        return depth === 0 ? (
          <div role="tree" aria-label="State">
            {rows}
          </div>
        ) : (
          rows
        );
      }}
    </Answer>
  );
}

function EntryRow({
  model,
  n,
  entry,
  depth,
  filter,
  pointer,
}: {
  model: Model;
  n: number;
  entry: Entry;
  depth: number;
  filter: string;
  pointer: string;
}) {
  const isBranch =
    (entry.kind === 'object' && (entry.count ?? 0) > 0) ||
    (entry.value?.cut ?? false) ||
    (entry.kind === 'array' && (entry.value?.size ?? 0) > 60);
  const isOpen = isBranch && open.value.has(pointer);
  const section = pointer.split('/')[1] as Section;
  const top = depth === 0 ? null : pointer.split('/')[2]!.replace(/~1/g, '/').replace(/~0/g, '~');
  const at = focus.key.value;
  const isFocus = at !== null && at.section === section && at.key === top && depth <= 1;
  return (
    <>
      <div
        role="treeitem"
        tabIndex={0}
        aria-expanded={isBranch ? isOpen : undefined}
        aria-level={depth + 1}
        aria-selected={isFocus}
        class={`state-row ${entry.changed ? 'state-changed' : ''} ${isFocus ? 'state-focus' : ''} ${depth === 0 ? 'state-section' : ''}`}
        style={{paddingLeft: `${depth * 14 + 4}px`}}
        data-pointer={pointer}
        onClick={() => choose()}
        onKeyDown={press}
      >
        <span
          class="twist"
          aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            if (isBranch) toggle(pointer);
          }}
        >
          {isBranch ? (isOpen ? '\u25be' : '\u25b8') : ''}
        </span>
        <span class="state-key">
          <Line text={entry.key} most={100} />
        </span>
        <span class="state-value">
          {entry.kind === 'object' ? (
            <span class="dim mono">{`{ ${entry.count === 0 ? '' : count(entry.count ?? 0) + (entry.many ? '+' : '')} }`}</span>
          ) : (
            <Short value={entry.value} most={100} />
          )}
        </span>
        {entry.changed && (
          <span class="changed-mark" title="Changed by this event">
            changed
          </span>
        )}
      </div>
      {isOpen && (
        <div role="group">
          <LevelView model={model} n={n} pointer={pointer} depth={depth + 1} filter={filter} />
        </div>
      )}
    </>
  );

  function choose(): void {
    if (depth === 0) {
      if (isBranch) toggle(pointer);
      return;
    }
    focusKey({section, key: top});
  }

  function press(event: KeyboardEvent): void {
    const row = event.currentTarget as HTMLElement;
    const rows = [
      ...row.closest('[role="tree"]')!.querySelectorAll<HTMLElement>('[role="treeitem"]'),
    ];
    const i = rows.indexOf(row);
    const {key} = event;
    let outer = i; // the branch that it is in
    while (Number(rows[outer]?.ariaLevel) > depth) outer--;
    const moves: Record<string, number> = {
      ArrowDown: i + 1,
      ArrowUp: i - 1,
      Home: 0,
      End: rows.length - 1,
      ArrowRight: isOpen ? i + 1 : i,
      ArrowLeft: outer,
    };
    if (key === 'Enter' || key === ' ') choose();
    else if (isBranch && key === (isOpen ? 'ArrowLeft' : 'ArrowRight')) toggle(pointer);
    else if (key in moves) rows[moves[key]!]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
