// run_diff.test.ts - reading patches, and which paths a contract allows.

import {describe, expect, test} from 'vitest';
import {covers, outside, parseDiff, unquote} from '../../src/screens/run/diff';
import {readEvent} from '../../src/screens/run/model';
import {matching} from '../../src/screens/run/events';
import {stateOf, rowsOf} from '../../src/screens/run/rail';
import {meaningOf, readViolation} from '../../src/screens/run/types';

const PATCH = `diff --git a/src/app/helper.c b/src/app/helper.c
new file mode 100644
index 0000000..081181f
--- /dev/null
+++ b/src/app/helper.c
@@ -0,0 +1,2 @@
+int helper(void)
+--- not a header
diff --git a/a b.txt b/a b.txt
deleted file mode 100644
index 1549b67..0000000
--- a/a b.txt\t
+++ /dev/null
@@ -1 +0,0 @@
-diff --git a/x b/x
diff --git a/old.c b/new/old.c
similarity index 90%
rename from old.c
rename to new/old.c
index 1..2 100644
--- a/old.c
+++ b/new/old.c
@@ -3,2 +3,3 @@ int main(void)
 same
+more
 last
\\ No newline at end of file
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git "a/\\303\\244\\".txt" "b/\\303\\244\\".txt"
index 1..2 100644
Binary files "a/\\303\\244\\".txt" and "b/\\303\\244\\".txt" differ
`;

describe('a patch', () => {
  const diff = parseDiff(PATCH);

  test('has the files that git names', () => {
    expect(diff.files.map((file) => [file.path, file.kind, file.added, file.removed])).toEqual([
      ['src/app/helper.c', 'added', 2, 0],
      ['a b.txt', 'deleted', 0, 1],
      ['new/old.c', 'renamed', 1, 0],
      ['run.sh', 'changed', 0, 0],
      ['\u00e4".txt', 'changed', 0, 0],
    ]);
    expect(diff.files[2]!.from).toBe('old.c');
    expect(diff.files[3]!.mode).toBe('100644 to 100755');
    expect(diff.files[4]!.isBinary).toBe(true);
  });

  test('counts the lines of a hunk, whatever they look like', () => {
    const texts = diff.rows
      .filter((row) => row.kind === 'add' || row.kind === 'del')
      .map((row) => row.text);
    expect(texts).toEqual(['int helper(void)', '--- not a header', 'diff --git a/x b/x', 'more']);
    const rows = diff.rows.filter(
      (row) => row.file === 2 && (row.kind === 'same' || row.kind === 'add'),
    );
    expect(rows.map((row) => [row.oldLine, row.newLine])).toEqual([
      [3, 3],
      [0, 4],
      [4, 5],
    ]);
  });

  test('is not lost when a hunk is shorter than it says', () => {
    const short = parseDiff(
      'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n+one\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n',
    );
    expect(short.files.map((file) => [file.path, file.added])).toEqual([
      ['x', 1],
      ['y', 1],
    ]);
  });

  test('may be empty, nonsense, or end anywhere', () => {
    expect(parseDiff('').files).toEqual([]);
    expect(parseDiff('hello\n+++ b/x\n@@ -1 +1 @@\n').files).toEqual([]);
    for (let end = 0; end < PATCH.length; end += 7)
      expect(() => parseDiff(PATCH.slice(0, end))).not.toThrow();
  });
});

test('quoted names', () => {
  expect(unquote('"a\\tb\\\\\\"\\001"')).toEqual({name: 'a\tb\\"\u0001', end: 14});
  expect(unquote('"open')).toBeNull();
});

describe('allowed paths', () => {
  test.each([
    ['src/app/', 'src/app/x.c', true],
    ['src/app', 'src/app/x.c', true],
    ['src/app', 'src/app', true],
    ['src/app/', 'src/app', false],
    ['src/app', 'src/apple/x.c', false],
    ['src', 'Src/x', false],
    ['', 'x', false],
    ['/', 'x', false],
    ['a/b/c', 'a/b', false],
  ])('%s covers %s: %s', (entry, path, is) => expect(covers(entry, path)).toBe(is));

  test('both sides of a rename count', () => {
    const file = parseDiff(PATCH).files[2]!;
    expect(outside(file, ['new/'])).toEqual(['old.c']);
    expect(outside(file, ['new/', 'old.c'])).toEqual([]);
  });
});

describe('the rail', () => {
  const step = (from: string, to: string, index: number, reason = 'r') => ({
    from,
    to,
    index,
    reason,
    attempt: 0,
    task_id: null,
    ts: `2026-01-01T00:00:${String(index).padStart(2, '0')}Z`,
  });

  test('begins a row with each fix', () => {
    const rows = rowsOf(
      [
        step('S0', 'S1', 6),
        step('S1', 'S2', 7),
        step('S2', 'S3', 9),
        step('S3', 'S5', 11),
        step('S5', 'S2', 12),
        step('S2', 'FAIL', 14),
      ],
      0,
    );
    expect(rows.map((row) => row.map((visit) => visit.state))).toEqual([
      ['S0', 'S1', 'S2', 'S3'],
      ['S5', 'S2', 'FAIL'],
    ]);
    expect(rows[0]!.map(stateOf)).toEqual(['passed', 'passed', 'passed', 'failed']);
    expect(rows[1]!.map(stateOf)).toEqual(['passed', 'failed', 'failed']);
    expect([rows[0]![1]!.first, rows[0]![1]!.last]).toEqual([7, 7]);
  });

  test('is in its first state before anything happened', () => {
    expect(rowsOf([], 5)).toEqual([
      [{state: 'S0', from: 5, to: NaN, reason: null, next: null, first: 1, last: 0}],
    ]);
    expect(stateOf(rowsOf([], 5)[0]![0]!)).toBe('now');
  });
});

describe('events', () => {
  const raw =
    '{"ts":"2026-01-01T00:00:00.000000Z","level":"INFO","event_type":"TEST_RESULT","run_id":"r","task_id":"a\\"payload\\":1","attempt":0,"trace_id":"t","payload":{"n":9007199254740993,"__proto__":{"x":1}}}';

  test('keep every digit and every name', () => {
    const event = readEvent(4, raw);
    expect(event.type).toBe('TEST_RESULT');
    expect(event.payload).toBe('{"n":9007199254740993,"__proto__":{"x":1}}');
    expect(({} as {x?: number}).x).toBeUndefined();
  });

  test('are filtered by words and ranges', () => {
    const events = [1, 2, 3, 4].map((index) =>
      readEvent(index, raw.replace('INFO', index === 3 ? 'ERROR' : 'INFO')),
    );
    expect(matching(events, '2-3').map((event) => event.index)).toEqual([2, 3]);
    expect(matching(events, 'error test').map((event) => event.index)).toEqual([3]);
    expect(matching(events, '3- error').map((event) => event.index)).toEqual([3]);
    expect(matching(events, '')).toBe(events);
  });

  test('that are no JSON are shown all the same', () => {
    expect(readEvent(1, 'nonsense').type).toBe('unreadable');
  });
});

test('violations', () => {
  expect(readViolation('D07 README.md')).toEqual({
    rule: 'D07',
    meaning: 'outside the allowed paths',
    about: 'README.md',
  });
  expect(readViolation('the reviewer disagrees')).toEqual({
    rule: '',
    meaning: '',
    about: 'the reviewer disagrees',
  });
  expect(readViolation('constructor x').rule).toBe('');
  expect(meaningOf('constructor')).toContain('run.md');
});
