// The offline verifier: cortex-verify over files in memory, against its recorded answers, and the
// second opinion on it. Without the WebAssembly program (scripts/wasm.sh) there is nothing to try.

import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {beforeAll, describe, expect, it} from 'vitest';
import {fromBase64} from '../../src/proof/bytes';
import {checkFile, judged, Unusable} from '../../src/offline/check';
import {argumentsOf, type Given, NO_OPTIONS, type Options, timeOf} from '../../src/offline/options';
import {secondOpinion} from '../../src/offline/second';
import {runProgram} from '../../src/offline/wasi';

const VECTORS = new URL('../../../tests/vectors/verify/', import.meta.url);
const MADE = new URL('../../../build/wasm/', import.meta.url);

interface Case {
  args: string[];
  exit: number;
  answers: {
    verdict: 'holds' | 'broken' | 'indeterminate';
    reason: string | null;
    message: string;
  }[];
  text: string;
  error: string;
}
const data: {cases: Case[]; files: Record<string, {base64?: string; at?: string}>} = JSON.parse(
  readFileSync(new URL('cases.json', VECTORS), 'utf8'),
);
const FILES = new Map<string, Uint8Array>(
  Object.entries(data.files).map(([name, file]) => [
    name,
    file.at ? new Uint8Array(readFileSync(new URL(file.at, VECTORS))) : fromBase64(file.base64!),
  ]),
);

const found = existsSync(MADE)
  ? readdirSync(MADE)
      .filter((name) => name.endsWith('.wasm'))
      .sort()
      .pop()
  : undefined;
let program: WebAssembly.Module;
beforeAll(async () => {
  if (found)
    program = await WebAssembly.compile(readFileSync(new URL(found, MADE)) as BufferSource);
});

const NOW = BigInt(Date.UTC(2026, 10, 28)) * 1000000n;
const given = (name: string): Given => ({name, bytes: FILES.get(name)!});

/** What the arguments of a case ask, in the words of the page; null when it has no words for that. */
function optionsOf(args: string[]): {options: Options; file: string} | null {
  const options: Options = {...NO_OPTIONS, keys: [], witnessKeys: []};
  const words = [...args];
  while (words[0]?.startsWith('--')) {
    const name = words.shift()!.slice(2);
    if (name === 'members' || name === 'absent') options.demand = name;
    else if (name === 'self-consistent') options.require = name;
    else {
      const value = words.shift()!;
      if (name === 'key') options.keys = [...options.keys, value];
      else if (name === 'checkpoint' || name === 'manifest' || name === 'entry')
        options[name] = given(value);
      else if (name === 'require') options.require = value as Options['require'];
      else if (name === 'overall-root') options.overallRoot = value;
      else if (name === 'from-root') options.fromRoot = value;
      else if (name === 'from-size') options.fromSize = value;
      else if (name === 'namespace') options.namespace = value as Options['namespace'];
      else if (['root', 'size', 'leaf', 'never', 'in', 'cosigners'].includes(name))
        options[name as 'root'] = value;
      else throw new Error(`this test does not know --${name}`);
    }
  }
  return words.length === 1 && FILES.has(words[0]!) ? {options, file: words[0]!} : null;
}

describe.skipIf(!found)('the program in memory', () => {
  it('says what cortex-verify says, to the byte', async () => {
    for (const one of data.cases) {
      const json = await runProgram(program, {
        args: ['--json', ...one.args],
        files: FILES,
        now: NOW,
      });
      expect(json.exit, one.args.join(' ')).toBe(one.exit);
      const answers = json.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      expect(answers, one.args.join(' ')).toEqual(one.answers);
      if (optionsOf(one.args)) continue; // below
      const args = ['--details', ...one.args];
      const text = await runProgram(program, {args, files: FILES, now: NOW});
      expect([text.stdout, text.stderr], one.args.join(' ')).toEqual([one.text, one.error]);
    }
  });

  it('is given its options by the page, and answers the same', async () => {
    let tried = 0;
    for (const one of data.cases) {
      const asked = optionsOf(one.args);
      if (!asked) continue;
      tried++;
      const job = {file: given(asked.file), options: asked.options, nowMs: Date.UTC(2026, 10, 28)};
      if (one.exit === 2) {
        await expect(checkFile(program, job), one.args.join(' ')).rejects.toThrow(Unusable);
        continue;
      }
      const result = await checkFile(program, job);
      if (one.answers.length === 0) {
        expect(result).toMatchObject({verdict: 'indeterminate', reason: 'NotChecked'});
        expect(one.error).toContain(result.message);
        continue;
      }
      const {verdict, reason, message} = one.answers[0]!;
      expect(result.programVerdict, `${one.args}: ${result.message}`).toBeNull();
      expect([result.verdict, result.reason, result.message], one.args.join(' ')).toEqual([
        verdict,
        reason,
        message,
      ]);
      if (!one.args.some((arg) => ['--manifest', '--entry', '--checkpoint'].includes(arg)))
        expect(result.text).toBe(one.text + one.error);
    }
    expect(tried).toBeGreaterThan(200);
  });

  it('knows only the files that it is given, and ends when it is told to', async () => {
    const of = (args: string[], files = new Map<string, Uint8Array>()) =>
      runProgram(program, {args, files, now: NOW});
    expect((await of(['--help'])).stdout).toContain('Usage: cortex-verify');
    const missing = await of(['/etc/passwd']);
    expect([missing.exit, missing.stderr]).toEqual([
      3,
      'cortex-verify: cannot open /etc/passwd: No such file or directory\n',
    ]);
    expect((await of(['-'])).exit).toBe(3);
    expect((await of(['--no-such-option', 'x'])).exit).toBe(2);
  });

  it('says when a file is too long', async () => {
    const long = new Uint8Array((64 << 20) + 1);
    const result = await checkFile(program, {
      file: {name: 'long', bytes: long},
      options: NO_OPTIONS,
      nowMs: 0,
    });
    expect(result.verdict).toBe('indeterminate');
    expect(result.message).toContain('longer than the limit of 67108864 bytes');
  });

  it('judges by the time that it is told', async () => {
    const scope = (time: string, name = 'scope.open') =>
      checkFile(program, {
        file: given(name),
        options: {...NO_OPTIONS, require: 'self-consistent', time},
        nowMs: Date.UTC(2026, 10, 28),
      });
    expect((await scope('')).verdict).toBe('holds');
    const late = {verdict: 'broken', reason: 'ScopeExpired'};
    expect(await scope('', 'scope.late')).toMatchObject(late);
    expect(await scope('2020-01-02', 'scope.late')).toMatchObject(late);
    expect((await scope('2019-12-31T23:59:59Z', 'scope.late')).verdict).toBe('holds');
    await expect(scope('2026-02-31')).rejects.toThrow('expected a time');
    await expect(scope('yesterday')).rejects.toThrow("found 'yesterday'");
  });

  it('never holds after a bit is flipped that a verdict rests on', async () => {
    const key = data.cases.find((one) => one.args.at(-1) === 'signed.cbor' && one.exit === 0)!
      .args[1]!;
    for (const name of ['answer.proof', 'signed.cbor']) {
      const bytes = FILES.get(name)!;
      for (let at = 0; at < bytes.length; at += 31) {
        const copy = bytes.slice();
        copy[at]! ^= 1 << (at % 8);
        const options = {...NO_OPTIONS, keys: [key]};
        const result = await checkFile(program, {file: {name, bytes: copy}, options, nowMs: 0});
        expect(result.verdict, `${name}, byte ${at}`).not.toBe('holds');
        expect(result.programVerdict, `${name}, byte ${at}: ${result.message}`).toBeNull();
      }
    }
  });
});

describe('the second opinion', () => {
  const answer = {reason: null, message: '', limits: []};

  it('agrees with the recorded answers wherever it has one', () => {
    let same = 0,
      asked = 0;
    for (const one of data.cases) {
      const found = optionsOf(one.args);
      if (!found || one.answers.length !== 1) continue;
      const recorded = one.answers[0] as unknown as Parameters<typeof secondOpinion>[2];
      const opinion = secondOpinion(FILES.get(found.file)!, found.options, recorded);
      expect(opinion.contradicts, `${one.args}: ${opinion.verdict} ${opinion.reason}`).toBe(false);
      if (opinion.verdict === null) continue;
      asked++;
      if (opinion.verdict === recorded.verdict) same++;
    }
    expect(asked).toBeGreaterThan(80);
    expect(same / asked).toBeGreaterThan(0.8);
  });

  it('contradicts a program that calls a broken file good, and a good one broken', () => {
    const bytes = FILES.get('signed.cbor')!;
    const keys = [
      data.cases.find((one) => one.args.at(-1) === 'signed.cbor' && one.exit === 0)!.args[1]!,
    ];
    const options = {...NO_OPTIONS, keys};
    const bent = bytes.slice();
    bent[bent.length >> 1]! ^= 1;
    const holds = {...answer, kind: 'manifest', verdict: 'holds'} as const;
    const broken = {...answer, kind: 'manifest', verdict: 'broken'} as const;
    expect(secondOpinion(bytes, options, holds)).toMatchObject({
      verdict: 'holds',
      contradicts: false,
    });
    expect(secondOpinion(bent, options, holds).contradicts).toBe(true);
    expect(secondOpinion(bytes, options, broken).contradicts).toBe(true);
  });

  it('takes the verdict away where it contradicts', () => {
    const said = {...answer, kind: 'manifest', verdict: 'holds'} as const;
    const against = {
      verdict: 'broken',
      reason: 'RootMismatch',
      message: '',
      contradicts: true,
    } as const;
    expect(judged(said, against)).toMatchObject({
      verdict: 'indeterminate',
      reason: 'OpinionsDiffer',
      message: expect.stringContaining('says holds, the second check broken (RootMismatch)'),
      programVerdict: 'holds',
    });
    expect(judged(said, {...against, contradicts: false})).toMatchObject({verdict: 'holds'});
  });

  it('is silent about what it does not know', () => {
    const scope = {...answer, kind: 'scope', verdict: 'holds'} as const;
    expect(secondOpinion(new Uint8Array(3), NO_OPTIONS, scope)).toMatchObject({
      verdict: null,
      contradicts: false,
    });
    const evidence = {...answer, kind: 'evidence', verdict: 'holds'} as const;
    expect(secondOpinion(new Uint8Array(9 << 20), NO_OPTIONS, evidence).verdict).toBeNull();
    const bad = {...NO_OPTIONS, keys: ['a+b'], root: 'zz'};
    expect(secondOpinion(new Uint8Array(3), bad, evidence).verdict).toBeNull();
  });
});

describe('options', () => {
  it('become arguments, and files that no checked file can take the place of', () => {
    const {args, files} = argumentsOf({
      ...NO_OPTIONS,
      keys: [' a+b+c ', ''],
      size: '19',
      checkpoint: {name: '--key', bytes: new Uint8Array(1)},
      demand: 'members',
      require: 'signed',
    });
    expect(args).toEqual([
      '--key=a+b+c',
      '--size=19',
      '--checkpoint=given/checkpoint/--key',
      '--members',
      '--require=signed',
    ]);
    expect([...files.keys()]).toEqual(['given/checkpoint/--key']);
  });

  it('read times, and refuse what is none', () => {
    expect(timeOf('', 5)).toBe(5000000n);
    expect(timeOf('1970-01-02', 0)).toBe(86400n * 1000000000n);
    expect(timeOf('2026-11-28T12:30:01Z', 0)).toBe(
      BigInt(Date.UTC(2026, 10, 28, 12, 30, 1)) * 1000000n,
    );
    for (const bad of [
      '2026-13-01',
      '2026-02-30',
      '2026-01-01T24:00',
      'x',
      '1969-01-01',
      '2300-01-01',
    ])
      expect(() => timeOf(bad, 0), bad).toThrow('expected a time');
  });
});
