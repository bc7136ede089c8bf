// check.ts - one file, checked: cortex-verify over it, its answer read, and the second opinion.

import type {Verdict} from '../proof/check';
import {argumentsOf, type Given, type Options, timeOf} from './options';
import {type Opinion, type ProgramAnswer, secondOpinion} from './second';
import {runProgram} from './wasi';

export interface Job {
  file: Given;
  options: Options;
  nowMs: number;
}

export interface Result {
  name: string;
  verdict: Verdict;
  reason: string | null;
  message: string;
  kind: string;
  /** What the verdict does not prove. */
  limits: string[];
  /** What cortex-verify prints for people, as it is. */
  text: string;
  /** Arguments that give the same in a terminal, files by their names; none after another time. */
  args: string[];
  second: Opinion | null;
  /** The program's own verdict, where the two contradict each other. */
  programVerdict: Verdict | null;
}

/** What could not be checked at all: no verdict about the file. */
export class Unusable extends Error {}

const EXIT_USAGE = 2;

function unchecked(name: string, message: string, args: string[]): Result {
  return {
    name,
    verdict: 'indeterminate',
    reason: 'NotChecked',
    message,
    kind: 'unknown',
    limits: [],
    text: message,
    args,
    second: null,
    programVerdict: null,
  };
}

/** Without the places that the page gives to option files, and without the program's name. */
function readable(complaint: string): string {
  return complaint
    .trim()
    .replace(/^cortex-verify: /, '')
    .replace(/given\/[a-z-]+\//g, '');
}

/** The program's verdict, unless the second opinion contradicts it: then there is none to rely on. */
export function judged(
  {verdict, reason, message}: ProgramAnswer,
  second: Opinion,
): Pick<Result, 'verdict' | 'reason' | 'message' | 'programVerdict'> {
  if (!second.contradicts) return {verdict, reason, message, programVerdict: null};
  const told = (one: Pick<Opinion, 'verdict' | 'reason'>): string =>
    `${one.verdict}${one.reason ? ` (${one.reason})` : ''}`;
  return {
    verdict: 'indeterminate',
    reason: 'OpinionsDiffer',
    message:
      `cortex-verify says ${told({verdict, reason})}, the second check ${told(second)}: one of the ` +
      'two is wrong. Do not rely on this file, and report it to the authors.',
    programVerdict: verdict,
  };
}

/** Throws Unusable when the options are at fault. */
export async function checkFile(program: WebAssembly.Module, job: Job): Promise<Result> {
  const {file, options} = job;
  let now: bigint;
  try {
    now = timeOf(options.time, job.nowMs);
  } catch (error) {
    throw new Unusable((error as Error).message);
  }
  const {args, files} = argumentsOf(options);
  files.set(file.name, file.bytes);
  const run = (form: string) =>
    runProgram(program, {args: [form, ...args, '--', file.name], files, now});
  const shown = options.time.trim()
    ? []
    : [...args.map((arg) => arg.replace(/=given\/[^/]+\//, '=')), file.name];
  let answer: ProgramAnswer, text: string;
  try {
    const said = await run('--json');
    if (said.exit === EXIT_USAGE) throw new Unusable(readable(said.stderr.split('\n')[0]!));
    if (said.stdout === '') return unchecked(file.name, readable(said.stderr), shown);
    answer = JSON.parse(said.stdout);
    const lines = await run('--details');
    text = lines.stdout + lines.stderr;
  } catch (error) {
    if (error instanceof Unusable) throw error;
    return unchecked(
      file.name,
      `the check ended before it had a verdict (${(error as Error).message}); try cortex-verify itself`,
      shown,
    );
  }
  const second = secondOpinion(file.bytes, options, answer);
  const {kind, limits} = answer;
  return {name: file.name, kind, limits, text, args: shown, second, ...judged(answer, second)};
}
