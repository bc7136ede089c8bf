// @vitest-environment jsdom
import {render} from 'preact';
import {act} from 'preact/test-utils';
import {afterEach, describe, expect, it} from 'vitest';
import {
  chooseEditor,
  EDITORS,
  type Editor,
  editor,
  editorLink,
  fileOf,
  placeOf,
} from '../../src/base/editor';
import type {LiveEntry} from '../../src/base/api-types';
import {Entries} from '../../src/screens/live/entries';
import {h} from 'preact';

const ROOT = '/home/ann/shop';

afterEach(() => {
  chooseEditor('none');
  document.body.replaceChildren();
});

describe('places', () => {
  it('are below the folder, whether the path is whole or relative', () => {
    expect(placeOf('src/a.ts', ROOT)).toBe('/home/ann/shop/src/a.ts');
    expect(placeOf('/home/ann/shop/src/a.ts', ROOT)).toBe('/home/ann/shop/src/a.ts');
    expect(placeOf('/home/ann/shop/src/a.ts', ROOT + '/')).toBe('/home/ann/shop/src/a.ts');
    expect(placeOf('src/\u00fc b.ts', ROOT)).toBe('/home/ann/shop/src/\u00fc b.ts');
  });

  it('are nowhere else', () => {
    for (const path of [
      '/etc/passwd',
      '/home/ann/shop',
      '/home/ann/shopping/a',
      '/home/ann/shop/../.ssh/id',
      '../a',
      'a/../../b',
      './a',
      'a//b',
      '//host/share',
      'a/',
      '',
      '/',
      'javascript:alert(1)',
      'a:1:2',
      'c:\\a',
      'a\\b',
      'a?b',
      'a#b',
      'a\nb',
      'a\u202eb',
      'a\u0000',
      'a\ud800',
      'a\u200bb',
      'x'.repeat(2000),
    ])
      expect(placeOf(path, ROOT), JSON.stringify(path)).toBeNull();
  });

  it('need a folder that is one', () => {
    for (const root of ['', '/', 'shop', '/a/../b', '/a//b', '/a\u202eb', '//host', 'vscode://x'])
      expect(placeOf('src/a.ts', root), root).toBeNull();
  });
});

describe('links', () => {
  it('have the form of their editor', () => {
    const of = (which: Editor, line: number | null = 12) =>
      editorLink('src/a b.ts', line, ROOT, which);
    expect(of('vscode')).toBe('vscode://file/home/ann/shop/src/a%20b.ts:12');
    expect(of('vscodium')).toBe('vscodium://file/home/ann/shop/src/a%20b.ts:12');
    expect(of('cursor', null)).toBe('cursor://file/home/ann/shop/src/a%20b.ts');
    expect(of('idea')).toBe('idea://open?file=/home/ann/shop/src/a%20b.ts&line=12');
    expect(of('none')).toBeNull();
    expect(editorLink('src/a.ts', 1, null, 'vscode')).toBeNull();
    for (const line of [0, -1, 1.5, NaN, 1e12])
      expect(of('vscode', line)).toBe('vscode://file/home/ann/shop/src/a%20b.ts');
  });

  it('are of a fixed scheme, whatever the name is', () => {
    const signs = [
      '"',
      "'",
      '<',
      '>',
      '&',
      ' ',
      '%',
      '@',
      '`',
      '$',
      '{',
      '|',
      '\u00e9',
      '\ud83d\ude00',
    ];
    for (const name of signs.flatMap((one) => [one, `javascript${one}`, `${one}/${one}.c`]))
      for (const which of Object.keys(EDITORS) as Editor[]) {
        const link = editorLink(name, 3, ROOT, which);
        if (which === 'none') expect(link).toBeNull();
        else
          expect(link, name).toMatch(
            /^(vscode|vscodium|cursor):\/\/file\/[\w\-.~!'()*%/]+:3$|^idea:\/\/open\?file=\/[\w\-.~!'()*%/]+&line=3$/,
          );
      }
  });

  it('are off until a person chooses, and unknown choices are none', () => {
    expect(editor.value).toBe('none');
    chooseEditor('vscode');
    expect(localStorage.getItem('cortex-editor')).toBe('vscode');
    for (const text of ['javascript', '__proto__', 'constructor', 'VSCODE', '']) {
      chooseEditor(text);
      expect(editor.value, text).toBe('none');
    }
  });
});

describe('files of calls', () => {
  it('are read as agents name them', () => {
    expect(fileOf({file_path: '/a/b', offset: 7})).toEqual({path: '/a/b', line: 7});
    expect(fileOf({path: 'x.py', view_range: [3, 9]})).toEqual({path: 'x.py', line: 3});
    expect(fileOf({filePath: 'x', line: '5'})).toEqual({path: 'x', line: null});
    expect(fileOf({path: 7})).toBeNull();
    expect(fileOf({path: '', file_path: ''})).toBeNull();
    expect(fileOf(JSON.parse('{"__proto__":{"path":"x"}}'))).toBeNull();
    for (const other of [null, undefined, 'path', ['path'], 3]) expect(fileOf(other)).toBeNull();
  });
});

describe('the live screen', () => {
  const entry = (input: unknown): LiveEntry => ({
    approved_by: null,
    erased: false,
    kind: 'decision',
    payload: {verdict: 'allow', call: {id: '1', tool: 'Edit', input, input_bytes: 1}},
    result: null,
    seq: 1,
    time: '2026-11-28T00:00:00Z',
  });
  const links = (input: unknown): string[] => {
    const box = document.createElement('div');
    document.body.append(box);
    act(() => render(h(Entries, {entries: [entry(input)], root: ROOT}), box));
    return [...box.querySelectorAll('a')].map((one) => one.getAttribute('href') ?? '');
  };

  it('links files of a session when an editor is chosen', () => {
    expect(links({file_path: `${ROOT}/src/a.ts`, offset: 4})).toEqual([]);
    chooseEditor('cursor');
    expect(links({file_path: `${ROOT}/src/a.ts`, offset: 4})).toEqual([
      'cursor://file/home/ann/shop/src/a.ts:4',
    ]);
    expect(links({file_path: '/etc/passwd'})).toEqual([]);
    expect(links({file_path: 'javascript:alert(1)//'})).toEqual([]);
    expect(document.body.textContent).toContain('javascript:alert(1)//');
  });
});
