import {describe, expect, it} from 'vitest';
import type {LivePolicy, LiveWaiting} from '../../src/base/api-types';
import {
  aboutOf,
  folderName,
  newlyWaiting,
  pathsOf,
  policyWords,
  toldOf,
  verdictTone,
} from '../../src/screens/live/model';

const effect = (verdict: string, text: string) => ({kind: 'command', rule: 'C09', text, verdict});
const waiting = (input_sha256: string) => ({input_sha256}) as LiveWaiting;
const POLICY: LivePolicy = {
  commit: null,
  contract: null,
  forbidden_actions: [],
  from: 'built_in',
  hosts: [],
  mode: 'ask',
  network: 'allow',
  root: '/r',
  tools_deny: [],
  unlisted: 'ask',
  write: [],
};

describe('what an entry says', () => {
  it('takes nothing of a payload for sure', () => {
    for (const payload of [null, 3, 'x', [], {effects: 3, call: 'x', subagent: []}, {call: null}]) {
      const told = toldOf(payload);
      expect(told.effects).toEqual([]);
      expect(told.verdict).toBe('');
      expect(aboutOf(told)).toBe('');
    }
    const told = toldOf({effects: [null, {text: 4}], call: {tool: 3, input_bytes: 'x'}});
    expect(told.effects.map((one) => one.text)).toEqual(['', '']);
    expect(told.call).toEqual({id: '', tool: '', input: null, inputBytes: 0});
  });

  it('is about the heaviest effect', () => {
    const effects = [effect('allow', 'a'), effect('unlisted', 'b'), effect('forbidden', 'c')];
    expect(aboutOf(toldOf({effects}))).toBe('c');
    expect(aboutOf(toldOf({effects: effects.slice(0, 2)}))).toBe('b');
  });

  it('warns where something would have been denied', () => {
    expect(verdictTone(toldOf({verdict: 'allow', would: 'allow'}))).toBe('good');
    expect(verdictTone(toldOf({verdict: 'allow', would: 'deny'}))).toBe('warn');
    expect(verdictTone(toldOf({verdict: 'deny', would: 'deny'}))).toBe('bad');
    expect(verdictTone(toldOf({verdict: 'constructor'}))).toBe('plain');
  });
});

describe('a session', () => {
  it('has the name of its folder', () => {
    expect(['/a/b/', '/a/b', '/', ''].map(folderName)).toEqual(['b', 'b', '/', 'no folder']);
  });

  it('tells each limit', () => {
    expect(policyWords(POLICY)).toEqual([
      'Network: any host.',
      'Writes in the work tree.',
      'What nothing allows is asked.',
    ]);
    expect(
      policyWords({...POLICY, network: 'deny', write: [['src/'], []], unlisted: 'deny'}),
    ).toEqual([
      'No network.',
      'Writes only below src/.',
      'Writes only below nothing.',
      'What nothing allows is denied.',
    ]);
  });

  it('announces what did not wait before, and nothing when it is opened', () => {
    expect(newlyWaiting(null, [waiting('a')])).toEqual([]);
    expect(newlyWaiting([waiting('a')], [waiting('a'), waiting('b')])).toEqual([waiting('b')]);
    expect(newlyWaiting([waiting('a')], [])).toEqual([]);
  });

  it('reads paths', () => {
    expect(pathsOf(' src/, docs/a.md\n,, ')).toEqual(['src/', 'docs/a.md']);
  });
});
