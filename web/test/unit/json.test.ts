import {describe, expect, it} from 'vitest';
import {oneLine, readJson, stringMember} from '../../src/base/json';

describe('canonical JSON', () => {
  it('keeps every digit', () => {
    expect(readJson('9007199254740993')).toEqual({kind: 'number', text: '9007199254740993'});
    expect(readJson('-1e-07')).toEqual({kind: 'number', text: '-1e-07'});
    expect(oneLine(readJson('{"a":[1.0,null,true],"b":"x"}'))).toBe(
      '{a: [1.0, null, true], b: "x"}',
    );
  });

  it('keeps the order and the names as they are', () => {
    const json = readJson('{"__proto__":1,"b":2,"a":3}');
    expect(json.kind === 'object' && json.members.map(([name]) => name)).toEqual([
      '__proto__',
      'b',
      'a',
    ]);
  });

  it('decodes strings, lone surrogates too', () => {
    expect(readJson('"\\ud800\\n\\u00e9"')).toEqual({kind: 'string', text: '\ud800\n\u00e9'});
    expect(stringMember(readJson('{"x":"y"}'), 'x')).toBe('y');
    expect(stringMember(readJson('{"x":1}'), 'x')).toBeUndefined();
  });

  it('reads what was cut as far as it goes', () => {
    for (const whole of ['{"a":[1,2,{"b":"text"}],"c":{}}', '[[[[1]]]]', '"abc"', 'true'])
      for (let size = 0; size < whole.length; size++)
        expect(() => readJson(whole.slice(0, size))).not.toThrow();
    const cut = readJson('{"a":"long te');
    expect(cut.kind === 'object' && cut.members[0]).toEqual(['a', {kind: 'cut', text: '"long te'}]);
  });

  it('does not run out of stack', () => {
    expect(() => readJson('['.repeat(100000))).not.toThrow();
  });
});
