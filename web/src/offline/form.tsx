// form.tsx - what the reader trusts and asks: a field for each option of cortex-verify.

import type {ComponentChildren} from 'preact';
import {useId, useState} from 'preact/hooks';
import {bytes as size} from '../base/format';
import {plain} from '../base/text';
import {toHex} from '../proof/bytes';
import {FILE_MAX, type Given, type Options} from './options';

/** Of a key file, as the program has it. */
const KEY_FILE_MAX = 4096;

const OPTIONS = {
  keys: 'key',
  witnessKeys: 'witness-key',
  overallRoot: 'overall-root',
  fromRoot: 'from-root',
  fromSize: 'from-size',
  fromCheckpoint: 'from-checkpoint',
} as Record<string, string>;
/** The time is the page's own: the program reads a clock. */
const optionOf = (name: string): string | undefined =>
  name === 'time' || name === 'demand' ? undefined : (OPTIONS[name] ?? name);

type Change = (change: Partial<Options>) => void;
type TextOption =
  | 'overallRoot'
  | 'root'
  | 'size'
  | 'fromRoot'
  | 'fromSize'
  | 'leaf'
  | 'never'
  | 'in'
  | 'cosigners'
  | 'time';
type FileOption = 'checkpoint' | 'fromCheckpoint' | 'manifest' | 'entry';

function Field({
  label,
  option,
  hint,
  children,
}: {
  label: string;
  /** The one of cortex-verify, by which its messages call it. */
  option?: string;
  hint?: string;
  children(id: string, described: string | undefined): ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>
        {label} {option && <code class="option">--{option}</code>}
      </label>
      {children(id, hint ? `${id}-hint` : undefined)}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

function TextField({
  name,
  label,
  hint,
  options,
  change,
  placeholder,
}: {
  name: TextOption;
  label: string;
  hint?: string;
  options: Options;
  change: Change;
  placeholder?: string;
}) {
  return (
    <Field label={label} option={optionOf(name)} hint={hint}>
      {(id, described) => (
        <input
          id={id}
          aria-describedby={described}
          value={options[name]}
          placeholder={placeholder}
          maxLength={4096}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => change({[name]: event.currentTarget.value})}
        />
      )}
    </Field>
  );
}

/** The bytes of a file of the reader, or why not. */
export async function readGiven(file: File, most = FILE_MAX): Promise<Given | string> {
  try {
    // One byte past the limit, so that the program says that the file is too long.
    return {name: file.name, bytes: new Uint8Array(await file.slice(0, most + 1).arrayBuffer())};
  } catch {
    return `${plain(file.name)} cannot be read; is it a folder, or was it moved?`;
  }
}

function FileField({
  name,
  label,
  hint,
  options,
  change,
}: {
  name: FileOption;
  label: string;
  hint?: string;
  options: Options;
  change: Change;
}) {
  const [wrong, setWrong] = useState<string | null>(null);
  const given = options[name];
  return (
    <Field label={label} option={optionOf(name)} hint={hint}>
      {(id, described) => (
        <div class="file-field">
          <input
            id={id}
            type="file"
            aria-describedby={described}
            onChange={async (event) => {
              const input = event.currentTarget,
                file = input.files?.[0];
              const read = file ? await readGiven(file) : null;
              setWrong(typeof read === 'string' ? read : null);
              change({[name]: typeof read === 'string' ? null : read});
            }}
          />
          {given && <span class="dim">{size(given.bytes.length)}</span>}
          {wrong && (
            <p class="wrong" role="alert">
              {wrong}
            </p>
          )}
        </div>
      )}
    </Field>
  );
}

/** A key file has a verifier key, hex digits, or 32 bytes; the text is what --key takes. */
function keyText(given: Given): string | null {
  if (given.bytes.length > KEY_FILE_MAX) return null;
  if (given.bytes.length === 32) return toHex(given.bytes);
  const text = new TextDecoder().decode(given.bytes).trim();
  return /^[\x21-\x7e]+$/.test(text) ? text : null;
}

function KeysField({
  name,
  label,
  hint,
  options,
  change,
}: {
  name: 'keys' | 'witnessKeys';
  label: string;
  hint: string;
  options: Options;
  change: Change;
}) {
  const [text, setText] = useState(options[name].join('\n'));
  const [wrong, setWrong] = useState<string | null>(null);
  const set = (value: string): void => {
    setText(value);
    change({
      [name]: value
        .split(/\s+/)
        .map((line) => line.trim())
        .filter(Boolean),
    });
  };
  const fileId = useId();
  return (
    <Field label={label} option={optionOf(name)} hint={hint}>
      {(id, described) => (
        <>
          <textarea
            id={id}
            aria-describedby={described}
            rows={2}
            value={text}
            maxLength={65536}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => set(event.currentTarget.value)}
          />
          <div class="file-field">
            <label for={fileId}>or from files:</label>
            <input
              id={fileId}
              type="file"
              multiple
              onChange={async (event) => {
                const input = event.currentTarget;
                const read = await Promise.all(
                  [...(input.files ?? [])]
                    .slice(0, 64)
                    .map((file) => readGiven(file, KEY_FILE_MAX)),
                );
                const keys = read.map((one) => (typeof one === 'string' ? null : keyText(one)));
                const bad = read.find((_, i) => keys[i] === null);
                setWrong(
                  bad === undefined
                    ? null
                    : typeof bad === 'string'
                      ? bad
                      : `found no key in ${plain(bad.name)}, expected a verifier key, 64 hex digits or 32 bytes`,
                );
                input.value = '';
                set(
                  [text.trim(), ...keys.filter((key) => key !== null)].filter(Boolean).join('\n'),
                );
              }}
            />
          </div>
          {wrong && (
            <p class="wrong" role="alert">
              {wrong}
            </p>
          )}
        </>
      )}
    </Field>
  );
}

function Choice<Name extends 'namespace' | 'demand' | 'require'>({
  name,
  label,
  choices,
  options,
  change,
}: {
  name: Name;
  label: string;
  choices: readonly [Options[Name], string][];
  options: Options;
  change: Change;
}) {
  return (
    <Field label={label} option={optionOf(name)}>
      {(id) => (
        <select
          id={id}
          value={options[name]}
          onChange={(event) => change({[name]: event.currentTarget.value as Options[Name]})}
        >
          {choices.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Form({options, change}: {options: Options; change: Change}) {
  const all = {options, change};
  return (
    <form class="form" onSubmit={(event) => event.preventDefault()}>
      <KeysField
        name="keys"
        label="Keys that you trust"
        hint="A verifier key (NAME+ID+BASE64) or 64 hex digits of an Ed25519 public key, one a line. Get them from someone else than the file."
        {...all}
      />
      <Choice
        name="require"
        label="A file holds when"
        choices={[
          ['anchored', 'something given here bears it out (anchored)'],
          ['signed', 'a key given here signed it (signed)'],
          ['self-consistent', 'it agrees with itself; anybody can make such a file'],
        ]}
        {...all}
      />
      <details>
        <summary>Roots, journals and the manifest</summary>
        <TextField
          name="overallRoot"
          label="Overall root of the manifest"
          placeholder="64 hex digits"
          {...all}
        />
        <TextField
          name="root"
          label="Root of the journal, or of the newer one"
          placeholder="64 hex digits"
          {...all}
        />
        <TextField name="size" label="Entries of that journal" placeholder="number" {...all} />
        <FileField
          name="checkpoint"
          label="Signed checkpoint, in place of root and size"
          {...all}
        />
        <TextField
          name="fromRoot"
          label="Root of the older journal"
          placeholder="64 hex digits"
          {...all}
        />
        <TextField
          name="fromSize"
          label="Entries of the older journal"
          placeholder="number"
          {...all}
        />
        <FileField name="fromCheckpoint" label="Checkpoint of the older journal" {...all} />
        <FileField name="manifest" label="Manifest of a state proof that comes alone" {...all} />
      </details>
      <details>
        <summary>Witnesses</summary>
        <KeysField
          name="witnessKeys"
          label="Keys of witnesses"
          hint="All of them must have cosigned a checkpoint, or as many as the next field says."
          {...all}
        />
        <TextField name="cosigners" label="Cosigners required" placeholder="number" {...all} />
      </details>
      <details>
        <summary>Questions</summary>
        <FileField
          name="entry"
          label="Entry that an inclusion proof, tlog-proof or receipt is about"
          {...all}
        />
        <TextField name="leaf" label="Its leaf hash" placeholder="64 hex digits" {...all} />
        <Choice
          name="namespace"
          label="A state proof is about"
          choices={[
            ['', 'memories or edges'],
            ['memories', 'memories only'],
            ['edges', 'edges only'],
          ]}
          {...all}
        />
        <Choice
          name="demand"
          label="Every key must be"
          choices={[
            ['', 'what the file says'],
            ['members', 'a member (erased or not)'],
            ['absent', 'absent'],
          ]}
          {...all}
        />
        <TextField
          name="never"
          label="A proof of absence must be about"
          placeholder="tool:bash, file:a/b, host:…"
          {...all}
        />
        <TextField
          name="in"
          label="in the run or session"
          placeholder="run:ID or session:ID"
          {...all}
        />
      </details>
      <details>
        <summary>Time</summary>
        <TextField
          name="time"
          label="Judge as of"
          hint="Scopes end. Empty: the clock of this computer. In UTC."
          placeholder="2026-11-28T12:00:00Z"
          {...all}
        />
      </details>
    </form>
  );
}
