import {describe, expect, it} from 'vitest';
import {
  argumentsOf,
  callSummary,
  changedLines,
  divided,
  editOf,
  isName,
  kindWords,
  placeWords,
  sentenceOf,
} from '../../src/screens/debugger/talk';

const sent = (value: unknown, cut = false) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return {cut, size: text.length, text};
};

describe('talk', () => {
  it('says what a call was about', () => {
    expect(callSummary(sent({command: 'ls -l', timeout: 5}))).toBe('ls -l');
    expect(callSummary(sent({command: ['bash', '-c', 'ls']}))).toBe('bash -c ls');
    expect(callSummary(sent({order: 77}))).toBe('order: 77');
    expect(callSummary(sent('plain words'))).toBe('plain words');
    expect(callSummary(undefined)).toBe('');
    expect(callSummary(sent({}))).toBe('');
  });

  it('reads only whole objects as arguments', () => {
    expect(argumentsOf(sent('{"a":1}'))).toEqual({a: 1});
    expect(argumentsOf(sent('{"a":1', true))).toBeNull();
    expect(argumentsOf(sent('{"a":'))).toBeNull();
    expect(argumentsOf(sent('[1]'))).toBeNull();
  });

  it('shows an edit as lines that went and came', () => {
    const edit = editOf(
      sent({file_path: 'a.c', old_string: 'one\ntwo\nthree', new_string: 'one\n2\nthree'}),
    );
    expect(edit?.path).toBe('a.c');
    expect(edit?.lines).toEqual([
      {sign: ' ', text: 'one'},
      {sign: '-', text: 'two'},
      {sign: '+', text: '2'},
      {sign: ' ', text: 'three'},
    ]);
    expect(editOf(sent({file_path: 'b', content: 'x\ny'}))?.lines.map((l) => l.sign)).toEqual([
      '+',
      '+',
    ]);
    expect(editOf(sent({path: 'only'}))).toBeNull();
    expect(editOf(sent({command: 'ls'}))).toBeNull();
    expect(changedLines('same', 'same')).toEqual([{sign: ' ', text: 'same'}]);
  });

  it('marks the words that were searched for', () => {
    expect(divided('The Quick fox', 'quick fox')).toEqual(['The ', 'Quick', ' ', 'fox', '']);
    expect(divided('a.b', '.')).toEqual(['a.b']);
    expect(divided('1+1', '1+1')).toEqual(['', '1+1', '']);
  });

  it('has one word for a kind', () => {
    const step = (kind: string) => kindWords({kind} as never);
    expect(step('act')).toBe('tool call');
    expect(step('tool_result')).toBe('tool result');
    expect(step('handoff')).toBe('handoff');
    expect(step('constructor')).toBe('constructor');
  });

  it('asks for what was selected, white space aside', () => {
    expect(sentenceOf('  the limit\n  is 500 ')).toBe('the limit is 500');
    expect(sentenceOf(' a ')).toBe('');
    expect(sentenceOf('x'.repeat(5000))).toHaveLength(1000);
  });

  it('says how a text came to be there', () => {
    const place = {agent: 'a', first: true, node: 'n', seq: 0, text: 't'};
    expect(placeWords({...place, how: 'result', tool: 'Read', path: '/a'})).toBe(
      'read from /a by Read',
    );
    expect(placeWords({...place, how: 'arguments'})).toBe('arguments of a call');
    expect(placeWords({...place, how: 'given', role: 'system'})).toBe(
      'given to the model as system',
    );
    expect(placeWords({...place, how: 'message', role: 'user'})).toBe('message of role user');
    expect(placeWords({...place, how: 'thinking'})).toBe('thinking');
  });

  it('tells names of events from words', () => {
    for (const name of ['#12', '@main', 'src:a-b', 'at:0:3', 'tools#4', 'e278f0c972'])
      expect(isName(name)).toBe(true);
    for (const words of ['refund', 'refund limit', 'dead', '# 12'])
      expect(isName(words)).toBe(false);
  });
});
