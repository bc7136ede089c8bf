import {describe, expect, it} from 'vitest';
import {pieces, plain, shorten} from '../../src/base/text';

describe('text of others', () => {
  it('shows what would act as signs', () => {
    expect(pieces('a\u001b[31mb')).toEqual([
      {text: 'a'},
      {text: '\u001b', sign: 'ESC'},
      {text: '[31mb'},
    ]);
    expect(pieces('x\u202ey').map((piece) => piece.sign)).toEqual([undefined, 'RLO', undefined]);
    expect(pieces('\u0000')[0]?.sign).toBe('NUL');
    expect(pieces('\u0085')[0]?.sign).toBe('U+0085');
    expect(pieces('\ud800x')[0]?.sign).toBe('U+D800');
  });

  it('leaves writing alone', () => {
    for (const text of ['', 'é中文', '😀', '👩‍👩‍👧', 'می‌خواهم', 'a\nb\tc', '<b>&amp;'])
      expect(pieces(text)).toEqual([{text}]);
  });

  it('shows the tag characters of hidden messages', () => {
    expect(pieces('a\u{e0041}b')).toHaveLength(3);
  });

  it('cuts between characters, never inside one', () => {
    expect(shorten('ab😀c', 3)).toEqual({text: 'ab', left: 3});
    expect(shorten('ab😀c', 4)).toEqual({text: 'ab😀', left: 1});
    expect(shorten('abc', 3)).toEqual({text: 'abc', left: 0});
  });

  it('is one line for narrow places', () => {
    expect(plain('a\n\nb\u001bc')).toBe('a b⟨ESC⟩c');
    expect(plain('x'.repeat(300), 5)).toBe('xxxxx…');
  });
});
