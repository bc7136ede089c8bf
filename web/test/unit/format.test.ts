import {describe, expect, it} from 'vitest';
import {
  ago,
  bytes,
  count,
  duration,
  plural,
  shortAgent,
  shortHex,
  shortId,
  time,
} from '../../src/base/format';

describe('numbers and times', () => {
  it('are the same for everybody', () => {
    expect(count(1234567)).toBe('1\u202f234\u202f567');
    expect(plural(1, 'event')).toBe('1 event');
    expect(plural(2, 'history', 'histories')).toBe('2 histories');
    expect(bytes(1023)).toBe('1023 B');
    expect(bytes(1536)).toBe('1.5 KiB');
    expect(time(1767600000)).toBe('2026-01-05 08:00:00');
    expect(time(1767600000.25)).toBe('2026-01-05 08:00:00.250');
    for (let ms = 0; ms < 1000; ms++)
      expect(time((1767600000000 + ms) / 1000)).toBe(
        '2026-01-05 08:00:00' + (ms ? `.${ms.toString().padStart(3, '0')}` : ''),
      );
    expect(time(7)).toBe('t 7');
    expect(time(NaN)).toBe('\u2013');
    expect(duration(201)).toBe('3 min 21 s');
    expect(duration(0.0421)).toBe('42 ms');
    expect(ago(1000, 1003)).toBe('now');
    expect(ago(1000, 1000 + 7200)).toBe('2 h ago');
  });

  it('shorten only what is a hash', () => {
    expect(shortId('a'.repeat(64))).toBe('a'.repeat(10));
    expect(shortId('n1')).toBe('n1');
    expect(shortAgent('agent/' + '0'.repeat(40))).toBe('agent 0000000000');
    expect(shortAgent('run/run_20260101_000000_' + 'ab12'.repeat(8) + '/task')).toBe(
      'run/run_20260101_000000_ab12ab12ab/task',
    );
    expect(shortAgent('coder')).toBe('coder');
    expect(shortHex('trace-976dbe5047633d39-000005 of 1770764274684000000')).toBe(
      'trace-976dbe5047\u2026-000005 of 1770764274684000000',
    );
  });
});
