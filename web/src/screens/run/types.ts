// types.ts - a governed run as the server tells it (run.md), and what its words mean.

import type {Tone} from '../../ui/badge';

export type {
  GateVerdict as Verdict,
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
  ['registry', 'Registry', 'the schemas are those of the program'],
  ['contract', 'Contract', 'the contract is well-formed and within limits'],
  ['policy', 'Policy', 'its rights are within the role, its paths are narrow'],
  ['worktree', 'Worktree', 'a work tree of the baseline could be made'],
  ['lock', 'Lock', 'nobody else works on these paths'],
  ['integrated', 'Integrated', 'the pieces fit together'],
  ['concurrency', 'Concurrency', 'tools are not shared with another run'],
  ['network', 'Network', 'network only when granted'],
  ['mcp', 'MCP tools', 'only tools on the list'],
  ['sampling', 'Sampling', 'no model calls through tools unless granted'],
  ['sandbox', 'Sandbox', 'the sandbox is complete'],
  ['runner', 'Runner', 'the agent ended by itself and in time'],
  ['output_schema', 'Reply', 'the reply matches its schema'],
  ['diff', 'Diff', 'only allowed paths changed, by ordinary means'],
  ['isolation', 'Reviewer isolation', 'the reviewer changed nothing'],
  ['review', 'Review', 'the reviewer agrees'],
  ['tool', 'Command', 'each test command is allowed'],
  ['tests', 'Tests', 'what must pass passes'],
  ['merge', 'Merge', 'main moved to exactly what was judged'],
];

/** The file of a bundle in which a gate's evidence stands. */
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
  D01: 'the baseline is no commit',
  D02: 'something in .git changed',
  D03: 'a ref moved that is not the task\u2019s',
  D04: 'index flags that hide changes',
  D05: 'a repository inside the repository',
  D06: 'a protected path',
  D07: 'outside the allowed paths',
  D08: 'a special file or new hard link',
  D09: 'a symbolic link',
  D10: 'a gitlink',
  D11: 'a mode other than 644 and 755',
  D12: 'binary content that was not announced',
  D13: 'a copy of a file outside the allowed paths',
  D14: 'names that collide after folding',
  D15: 'more paths or bytes than a change may have',
  C01: 'not one command line',
  C02: 'metacharacters or control bytes',
  C03: 'no program',
  C04: 'an assignment in place of a program',
  C05: 'network word unknown',
  C06: 'policy pack unknown',
  C07: 'a forbidden action',
  C08: 'a network tool without a granted network',
  C09: 'a wrapper',
  C10: 'a program that is no allowlisted script',
  C11: 'an interpreter with code on its command line',
  C12: 'git with more than a read-only command',
  C13: 'not on the allowlist',
  C14: 'a script that is not the baseline\u2019s',
  C15: 'an argument that leaves the repository',
  C16: 'no such program in the trusted folders',
  wide_path: 'a wide path, which needs an approval',
};

/** An entry of a table by a name that somebody else chose: "constructor" is none. */
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
  manifest_missing: 'there is no manifest',
  manifest_invalid: 'the manifest cannot be read',
  manifest_schema: 'the manifest is not as its schema says',
  run_id_mismatch: 'it is the bundle of another run',
  seal_missing: 'the ledger has no seal of it',
  seal_mismatch: 'the ledger sealed another manifest',
  file_missing: 'a file that the manifest names is gone',
  file_uncovered: 'a file that the manifest does not name',
  file_hash_mismatch: 'a file is not the one that the manifest names',
  bundle_special_file: 'something in the bundle is no ordinary file',
  contract_schema: 'the contract is not as its schema says',
  report_schema: 'a report is not as its schema says',
  event_not_json: 'a line of the events is no JSON',
  event_schema: 'an event is not as its schema says',
  event_order: 'events are not in order of time',
  event_run_id: 'an event is of another run',
  events_torn: 'the last event is not whole',
  chain_missing: 'the chain of events is gone',
  chain_invalid: 'the chain of events is broken',
  state_order: 'the states are not in an order that is possible',
  mirror_mismatch: 'two copies of one file differ',
  patch_names_mismatch: 'the patch touches other files than the list of names',
  diff_scope: 'the patch leaves the allowed paths',
  tests_outside_contract: 'other tests ran than the contract has',
  status_mismatch: 'the status is not what the events say',
  baseline_mismatch: 'the baseline is not what the events say',
  ref_mismatch: 'a reference does not lead to what it names',
  ledger_entry_missing: 'an event is not in the ledger',
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
