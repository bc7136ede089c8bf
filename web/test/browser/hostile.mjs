// hostile.mjs - texts that have misled pages, as names, keys, values, lines and file names; and
// lattices, traces and a run made of them.

import {createHash, createPrivateKey, createPublicKey, sign} from 'node:crypto';
import {appendFileSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {Writer} from './lattice.mjs';
import {putBundle} from './runs.mjs';

export const MEGABYTE = 'A'.repeat(1 << 20);

export const HOSTILE = [
  '<script>window.pwned=1</script>',
  '"><img src=x onerror=window.pwned=1>',
  "' onmouseover=window.pwned=1 x='",
  'javascript:window.pwned=1',
  'data:text/html,<script>window.pwned=1</script>',
  '</script><script>window.pwned=1</script>',
  '<svg onload=window.pwned=1>',
  '<iframe srcdoc="<script>parent.pwned=1</script>">',
  '--><style>*{display:none}</style><!--',
  '</textarea></title></style><script>alert(1)</script>',
  '{{constructor.constructor("window.pwned=1")()}}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template that must stay text
  '${window.pwned=1}',
  '\u202egnp.exe\u202c',
  '\u2066iso\u2069',
  '\u061carabic mark\u200f',
  '\u05e9\u05dc\u05d5\u05dd <b>x</b>',
  '\u001b[31mred\u001b[0m\u0007',
  '\u001b]8;;http://example.invalid\u001b\\link\u001b]8;;\u001b\\',
  '\u009b2J',
  'a\u0000b',
  'c\rd\be\u007f',
  '\ufeffbom\u200bzero\u00adsoft',
  '\u2028line\u2029paragraph',
  '\ud83d\udc68\u200d\ud83d\udc69\u200d\ud83d\udc67',
  'Z' + '\u0335\u0321\u0489'.repeat(40),
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '__defineGetter__',
  'valueOf',
  '..',
  '../../etc/passwd',
  '#/debugger/all',
  '%00%3Cscript%3E',
  '&lt;script&gt;&#x3c;',
  ' ',
  '',
  '\t',
  '9007199254740993',
  '-0',
  '1e999',
  'null',
];

/** An object of its own names only: __proto__ too. */
function member(object, key, value) {
  Object.defineProperty(object, key, {value, enumerable: true, configurable: true, writable: true});
  return object;
}

function nest(text, depth) {
  return depth === 0 ? text : member({}, text || 'k', nest(text, depth - 1));
}

export function hostileLattice() {
  const writer = new Writer();
  for (const [i, text] of HOSTILE.entries()) {
    const event = member({action: text, reasoning: text}, text, [text, nest(text, 3)]);
    writer.add(
      'agent ' + text.replace(/[\u0000]/g, '\u0001'),
      event,
      member({['k' + i]: text}, text, member({}, text, [text])),
    );
  }
  writer.add('big', {action: 'big', text: MEGABYTE}, {big: MEGABYTE, deep: nest('d', 60)});
  return writer.text();
}

/** As Python's json.dumps(value, sort_keys=True): the bytes that form B signs (docs/formats/trace.md). */
function pythonJson(value) {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`;
  if (value && typeof value === 'object')
    return `{${Object.keys(value)
      .sort()
      .map((key) => `${pythonJson(key)}: ${pythonJson(value[key])}`)
      .join(', ')}}`;
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** The key of an agent whose every word is hostile; its name is, too. */
function keyOf(text) {
  const seed = createHash('sha256')
    .update('hostile ' + text)
    .digest();
  const privateKey = createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const raw = createPublicKey(privateKey).export({format: 'der', type: 'spki'}).subarray(-32);
  return {privateKey, publicKey: raw.toString('base64url')};
}

const said = (text) => text.trim() !== '';
const agentOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** The trust store of those who sign the traces below. */
export function hostileKeys() {
  return JSON.stringify({
    format: 'cortex-trust-1',
    keys: HOSTILE.filter(said).map((text) => ({
      agents: [agentOf(text)],
      algorithm: 'ed25519',
      key_id: `k-${agentOf(text)}`,
      description: text,
      not_after: null,
      not_before: '2025-12-01T00:00:00.000000000Z',
      public_key: keyOf(text).publicKey,
      replaces: null,
      revoked_at: null,
    })),
  });
}

/** Traces with hostile text in every field that is a text, signed by trusted keys: they verify.  `runId` is the run that
 *  the batch says they belong to. */
export function hostileTraces(runId = HOSTILE[1]) {
  const at = (i, part) =>
    new Date(Date.UTC(2026, 0, 2, 0, i, part)).toISOString().replace('Z', '+00:00');
  const events = HOSTILE.filter(said).map((text, i) => {
    const long = i === 0 ? text + MEGABYTE : text;
    const components = [
      [
        'observation',
        'THOUGHT_START',
        {
          task_description: long,
          round_number: 0,
          thought_type: text,
          source_adapter: text,
          channel_id: text,
        },
      ],
      [
        'context',
        'SNAPSHOT_AND_CONTEXT',
        {cognitive_state: text, system_snapshot: text, conversation_history: [text, text]},
      ],
      [
        'rationale',
        'DMA_RESULTS',
        {
          csdma: {plausibility_score: 0.9, reasoning: long, flags: [text]},
          dsdma: {domain: text, domain_alignment: 0.8, reasoning: text},
          pdma: {stakeholders: text, conflicts: text, reasoning: text},
          idma: {
            k_eff: 1.5,
            phase: text,
            sources_identified: [text, text],
            correlation_factors: [text],
            fragility_flag: true,
            reasoning: text,
          },
        },
      ],
      [
        'rationale',
        'ASPDMA_RESULT',
        {
          action_rationale: long,
          selected_action: text,
          reasoning_summary: text,
          alternatives_considered: [text],
          action_parameters: member({}, text || 'k', text),
        },
      ],
      [
        'conscience',
        'CONSCIENCE_RESULT',
        {
          conscience_passed: false,
          action_was_overridden: true,
          conscience_override_reason: text,
          entropy_reason: text,
          coherence_reason: text,
          epistemic_humility_justification: text,
          optimization_veto_decision: text,
          final_action: text,
        },
      ],
      [
        'action',
        'ACTION_RESULT',
        {
          action_executed: text,
          audit_entry_id: text,
          audit_sequence_number: i + 1,
          audit_entry_hash: text,
          audit_signature: text,
          execution_success: true,
          execution_error: text,
          models_used: [text],
          follow_up_thought_id: text,
        },
      ],
    ].map(([component_type, event_type, data], k) => ({
      component_type,
      event_type,
      timestamp: at(i, k),
      data,
    }));
    return {
      event_type: 'complete_trace',
      trace: {
        trace_id: `trace-${i} ${text}`,
        thought_id: text,
        task_id: text,
        agent_id_hash: agentOf(text),
        started_at: at(i, 0),
        completed_at: at(i, 6),
        trace_level: 'full_traces',
        components,
        signature_key_id: `k-${agentOf(text)}`,
        signature: sign(null, Buffer.from(pythonJson(components)), keyOf(text).privateKey).toString(
          'base64url',
        ),
      },
    };
  });
  return JSON.stringify({
    events,
    batch_timestamp: at(59, 0),
    consent_timestamp: at(0, 0),
    trace_level: 'full_traces',
    correlation_metadata: member({run_id: runId}, HOSTILE[0], HOSTILE[12]),
  });
}

function edit(path, change) {
  const value = JSON.parse(readFileSync(path, 'utf8'));
  change(value);
  writeFileSync(path, JSON.stringify(value, null, 2) + '\n', {mode: 0o644});
}

function quoted(text) {
  return `"${[...Buffer.from(text)]
    .map((byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c
        ? '\\' + byte.toString(8).padStart(3, '0')
        : String.fromCharCode(byte),
    )
    .join('')}"`;
}

/** A bundle whose every text is somebody else's: it verifies as broken, and is shown all the same. */
export function hostileRun(runs) {
  const folder = putBundle(runs, 'out_of_scope');
  const texts = HOSTILE.filter((text) => text.trim() !== '');
  edit(join(folder, 'manifest.json'), (manifest) => {
    Object.assign(manifest, {
      user_request: texts.join(' '),
      task_id: HOSTILE[0],
      failure_reason: HOSTILE[1],
    });
    manifest.trace.trace_id = HOSTILE[3];
    manifest.repo.final_ref = HOSTILE[6];
  });
  edit(join(folder, 'contract.json'), (contract) => {
    contract.allowed_paths = texts;
    contract.inputs.spec = texts.join('\n');
  });
  writeFileSync(
    join(folder, 'patch.diff'),
    texts
      .map(
        (text, i) =>
          `diff --git ${quoted('a/' + i + text)} ${quoted('b/' + i + text)}\n--- ${quoted('a/' + i + text)}\n+++ ${quoted('b/' + i + text)}\n` +
          `@@ -1 +1,2 @@ ${text.replace(/\n/g, '')}\n-${text.replace(/\n/g, '')}\n+${text.replace(/\n/g, '')}\n+${i === 0 ? MEGABYTE : 'x'}\n`,
      )
      .join(''),
    {mode: 0o644},
  );
  const events = readFileSync(join(folder, 'events.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const line = (type, payload, i) => ({
    ...events[3],
    event_type: type,
    task_id: texts[i % texts.length],
    trace_id: texts[i % texts.length],
    payload,
  });
  const more = texts.flatMap((text, i) => [
    line(text, member(member({}, text, text), 'more', [text]), i),
    line(
      'DIFF_GATE_RESULT',
      {passed: false, violations: ['D07 ' + text, text], changed_files: texts},
      i,
    ),
    line('STATE_TRANSITION', {from: text, to: texts[(i + 1) % texts.length], reason: text}, i),
  ]);
  more.push(line('TOOL_INVOCATION', {big: MEGABYTE.slice(0, 1 << 18)}, 0));
  writeFileSync(
    join(folder, 'events.jsonl'),
    [...events.slice(0, -1), ...more, events.at(-1)]
      .map((event) => JSON.stringify(event))
      .join('\n') + '\n',
    {mode: 0o644},
  );
  mkdirSync(join(folder, 'artifacts'), {recursive: true});
  for (const text of texts.filter(
    (one) => !/[/\0]/.test(one) && one !== '..' && Buffer.byteLength(one) < 200,
  ))
    writeFileSync(join(folder, 'artifacts', text), texts.join('\n'));
  appendFileSync(join(folder, 'tests/stdout.log'), texts.join('\n') + '\n' + MEGABYTE);
  return folder;
}
