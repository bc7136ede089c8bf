// types.ts - a governed run as the server returns it (run.md), and the meanings of its terms.

import type {Tone} from '../../ui/badge';

export type {
  GateVerdict as Verdict,
  OutputEnd,
  Run as RunShown,
  RunFile as FileItem,
  RunGates as Gates,
  RunItem,
  RunReplay as Replayed,
  RunTimeline as Timeline,
  RunTransition as Transition,
  RunVerify as Verified,
} from '../../base/api-types';

export const STATES: Readonly<Record<string, string>> = {
  S0: 'Contract',
  S1: 'Plan',
  S2: 'Work',
  S3: 'Review',
  S4: 'Tests',
  S5: 'Fix',
  S6: 'Done',
  FAIL: 'Failed',
};

/** In the order in which a run meets them (run.md 13). */
export const GATES: readonly [string, string, string][] = [
  ['registry', 'Registry', 'the schemas match the program'],
  ['contract', 'Contract', 'the contract is well-formed and within limits'],
  ['policy', 'Policy', 'permissions are within the role, and paths are narrow'],
  ['worktree', 'Worktree', 'a work tree of the baseline was created'],
  ['lock', 'Lock', 'no other run holds a lock on these paths'],
  ['integrated', 'Integrated', 'all required tools are integrated'],
  ['concurrency', 'Concurrency', 'tools are not shared with another run'],
  ['network', 'Network', 'network only when granted'],
  ['mcp', 'MCP tools', 'only tools on the list'],
  ['sampling', 'Sampling', 'no model calls through tools unless granted'],
  ['sandbox', 'Sandbox', 'the sandbox is complete'],
  ['runner', 'Runner', 'the agent ended normally within its time limit'],
  ['output_schema', 'Reply', 'the reply matches its schema'],
  ['diff', 'Diff', 'only allowed paths changed, with ordinary files'],
  ['isolation', 'Reviewer isolation', 'the reviewer changed nothing'],
  ['review', 'Review', 'the reviewer approves'],
  ['tool', 'Command', 'each test command is allowed'],
  ['tests', 'Tests', 'all required tests pass'],
  ['merge', 'Merge', 'main moved to exactly the checked commit'],
];

/** The file of a bundle with a gate's evidence. */
export const REPORT_OF: Readonly<Record<string, string>> = {
  contract: 'contract.json',
  policy: 'contract.json',
  output_schema: 'reports/task_result.json',
  review: 'reports/review_report.json',
  isolation: 'reports/review_report.json',
  tests: 'reports/test_report.json',
  tool: 'tests/command.txt',
  runner: 'artifacts/runner_result.json',
};

const RULES: Readonly<Record<string, string>> = {
  D01: 'the baseline is not a commit',
  D02: 'a file in .git changed',
  D03: 'a ref that does not belong to the task moved',
  D04: 'index flags that hide changes',
  D05: 'a repository inside the repository',
  D06: 'a protected path',
  D07: 'outside the allowed paths',
  D08: 'a special file or new hard link',
  D09: 'a symbolic link',
  D10: 'a gitlink',
  D11: 'a mode other than 644 and 755',
  D12: 'undeclared binary content',
  D13: 'a copy of a file outside the allowed paths',
  D14: 'names that collide after folding',
  D15: 'too many paths or bytes',
  C01: 'not a single command line',
  C02: 'shell metacharacters or control bytes',
  C03: 'no program',
  C04: 'an assignment instead of a program',
  C05: 'unknown network setting',
  C06: 'unknown policy pack',
  C07: 'a forbidden action',
  C08: 'a network tool without network permission',
  C09: 'a wrapper',
  C10: 'a program that is not an allowlisted script',
  C11: 'an interpreter with code on its command line',
  C12: 'git with more than a read-only command',
  C13: 'not on the allowlist',
  C14: 'a script that differs from the baseline',
  C15: 'an argument that points outside the repository',
  C16: 'no such program in the trusted directories',
  wide_path: 'a wide path, which needs an approval',
};

/** An entry of a table by an untrusted name: "constructor" is not one. */
export function entry<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** "D07 README.md" as rule, what the rule says, and what it is about. */
export function readViolation(text: string): {rule: string; meaning: string; about: string} {
  const match = /^([A-Z]\d\d|[a-z_]{3,40})(?: ([\s\S]*))?$/.exec(text);
  const rule = match?.[1] ?? '';
  if (!match || (entry(RULES, rule) === undefined && !/^[A-Z]\d\d$/.test(rule)))
    return {rule: '', meaning: '', about: text};
  return {rule, meaning: entry(RULES, rule) ?? '', about: match[2] ?? ''};
}

export const CODES: Readonly<Record<string, string>> = {
  manifest_missing: 'the manifest is missing',
  manifest_invalid: 'the manifest cannot be read',
  manifest_schema: 'the manifest does not match its schema',
  run_id_mismatch: 'the bundle belongs to another run',
  seal_missing: 'the ledger has no seal for the run',
  seal_mismatch: 'the ledger sealed another manifest',
  file_missing: 'a file listed in the manifest is missing',
  file_uncovered: 'a file is not listed in the manifest',
  file_hash_mismatch: 'a file does not match the manifest',
  bundle_special_file: 'the bundle contains a special file',
  contract_schema: 'the contract does not match its schema',
  report_schema: 'a report does not match its schema',
  event_not_json: 'a line of the events is not JSON',
  event_schema: 'an event does not match its schema',
  event_order: 'events are not in chronological order',
  event_run_id: 'an event belongs to another run',
  events_torn: 'the last event is truncated',
  chain_missing: 'the event chain is missing',
  chain_invalid: 'the event chain is broken',
  state_order: 'the order of states is invalid',
  mirror_mismatch: 'two copies of a file differ',
  patch_names_mismatch: 'the patch changes files that are not in the list of names',
  diff_scope: 'the patch changes files outside the allowed paths',
  tests_outside_contract: 'the tests that ran are not those of the contract',
  status_mismatch: 'the status contradicts the events',
  baseline_mismatch: 'the baseline contradicts the events',
  ref_mismatch: 'a reference does not resolve',
  ledger_entry_missing: 'an event is not in the ledger',
  stored_changed: 'the stored bundle is not what was recorded',
  stored_missing: 'the stored bundle is not there',
  stored_erased: 'the stored bundle was erased',
  stored_unreachable: 'the stored bundle cannot be reached',
  ended_by_another: 'another machine ended the run before its seal',
};

export function meaningOf(code: string): string {
  return entry(CODES, code) ?? 'see run.md, section 18';
}

export function statusTone(status: string): Tone {
  return status === 'SUCCESS'
    ? 'good'
    : status === 'FAILURE'
      ? 'bad'
      : status === 'RUNNING'
        ? 'info'
        : 'plain';
}

export function verdictTone(verdict: string | undefined): Tone {
  return verdict === 'holds' ? 'good' : verdict === 'broken' ? 'bad' : 'warn';
}

/** RFC 3339 as seconds; NaN when it is none. */
export function seconds(text: string | null | undefined): number {
  return text ? Date.parse(text) / 1000 : NaN;
}
