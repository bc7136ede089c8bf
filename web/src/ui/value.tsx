// value.tsx - a recorded value: in one line, or as a tree with expandable branches.

import {useMemo, useState} from 'preact/hooks';
import type {Value as Sent} from '../base/api-types';
import {bytes, count, shortHex} from '../base/format';
import {oneLine, readJson, type Json} from '../base/json';
import {Digest, Line, Text} from './text';

export type {Sent};

/** In one line; `-` for what is not there. */
export function Short({value, most = 120}: {value: Sent | null | undefined; most?: number}) {
  if (!value)
    return (
      <span class="value-none" title="no value">
        {'\u2014'}
      </span>
    );
  const json = readJson(value.text.slice(0, most * 6));
  const kind =
    json.kind === 'string'
      ? 'string'
      : json.kind === 'number'
        ? 'number'
        : json.kind === 'word'
          ? 'word'
          : 'mixed';
  return (
    <Line
      class={`mono value-${kind}`}
      text={oneLine(json, most) + (value.cut ? '\u2026' : '')}
      most={most}
    />
  );
}

function summary(json: Json): string {
  if (json.kind === 'array') return `[ ${count(json.items.length)} ]`;
  if (json.kind === 'object') return `{ ${count(json.members.length)} }`;
  return '';
}

const CHILDREN = 200;

function Branch({
  name,
  json,
  depth,
  open: isOpenAtFirst,
  isRaw = false,
}: {
  name: string | null;
  json: Json;
  depth: number;
  open: boolean;
  /** What was recorded, to the letter. */
  isRaw?: boolean;
}) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const [most, setMost] = useState(CHILDREN);
  const label = name !== null && (
    <span class="value-key">
      <Line text={name} most={200} />
    </span>
  );
  if (json.kind !== 'array' && json.kind !== 'object') {
    return (
      <div class="value-leaf">
        {label}
        <Leaf json={json} isRaw={isRaw} />
      </div>
    );
  }
  const children: [string, Json][] =
    json.kind === 'array' ? json.items.map((item, i) => [String(i), item]) : json.members;
  if (children.length === 0)
    return (
      <div class="value-leaf">
        {label}
        <span class="dim mono">{json.kind === 'array' ? '[ ]' : '{ }'}</span>
      </div>
    );
  return (
    <div class="value-branch">
      <button
        type="button"
        class="link value-open"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="twist" aria-hidden="true">
          {isOpen ? '\u25be' : '\u25b8'}
        </span>
        {label}
        <span class="dim mono">{summary(json)}</span>
        {!isOpen && <Line class="dim mono" text={oneLine(json, 80)} most={80} />}
      </button>
      {isOpen && (
        <div class="value-children">
          {children.slice(0, most).map(([key, child], i) => (
            <Branch
              key={i}
              name={key}
              json={child}
              depth={depth + 1}
              open={depth < 1 && children.length < 20}
              isRaw={isRaw || RAW.has(key)}
            />
          ))}
          {children.length > most && (
            <button type="button" class="more" onClick={() => setMost(most + CHILDREN * 5)}>
              {`${count(children.length - most)} more`}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

const RAW: ReadonlySet<string> = new Set(['raw', 'raw_step', 'raw_b64']);
/** Longer than this it is a text with digits in it, and no name of something. */
const NAME_MOST = 120;

function Leaf({json, isRaw}: {json: Json; isRaw: boolean}) {
  if (json.kind === 'string')
    return !isRaw && json.text.length <= NAME_MOST && shortHex(json.text) !== json.text ? (
      <Digest text={json.text} what="Value" />
    ) : (
      <Text class="value-string" text={json.text} />
    );
  if (json.kind === 'cut') return <Text class="dim mono" text={json.text} />;
  return <span class={`mono value-${json.kind}`}>{'text' in json ? json.text : ''}</span>;
}

/** The whole of it, as far as it was sent; some members in front, in that order, some at the end. */
export function Value({
  value,
  hide = [],
  first = [],
  last = [],
}: {
  value: Sent;
  hide?: readonly string[];
  first?: readonly string[];
  last?: readonly string[];
}) {
  const json = useMemo(() => {
    const read = readJson(value.text);
    if (read.kind !== 'object') return read;
    const place = (name: string): number =>
      first.includes(name)
        ? first.indexOf(name) - first.length
        : last.includes(name)
          ? 1 + last.indexOf(name)
          : 0;
    const members = read.members.filter(([name]) => !hide.includes(name));
    return {...read, members: members.sort(([a], [b]) => place(a) - place(b))};
  }, [value.text]);
  return (
    <div class="value">
      {json.kind === 'object' ? (
        json.members.map(([name, child], i) => (
          <Branch key={i} name={name} json={child} depth={0} open={false} isRaw={RAW.has(name)} />
        ))
      ) : (
        <Branch name={null} json={json} depth={0} open />
      )}
      {value.cut && (
        <p class="dim">{`Truncated: the first ${bytes(value.text.length)} of ${value.least ? 'more than ' : ''}${bytes(value.size)}.`}</p>
      )}
    </div>
  );
}
