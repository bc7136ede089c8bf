// editor.ts - links from a file of a step to its line in an editor on this machine.
//
// Off until a person chooses an editor.  Names of files come from agents: a link is made only for a
// path below a folder that is known for what is shown, by one of the forms below, and never for a
// name that an editor could read as something else.

import {signal} from '@preact/signals';
import {pieces} from './text';

export const EDITORS = {
  none: 'no editor',
  vscode: 'VS Code',
  vscodium: 'VSCodium',
  cursor: 'Cursor',
  idea: 'IntelliJ IDEA',
} as const;

export type Editor = keyof typeof EDITORS;

const KEY = 'cortex-editor';
const PATH_MAX = 1024;
const LINE_MAX = 10_000_000;

export function isEditor(text: unknown): text is Editor {
  return typeof text === 'string' && Object.hasOwn(EDITORS, text);
}

function stored(): Editor {
  try {
    const text = localStorage.getItem(KEY);
    return isEditor(text) ? text : 'none';
  } catch {
    return 'none';
  }
}

export const editor = signal<Editor>(stored());

export function chooseEditor(text: string): void {
  editor.value = isEditor(text) ? text : 'none';
  try {
    localStorage.setItem(KEY, editor.value);
  } catch {
    // A page opened from a disk may have no storage; the choice holds until it is closed.
  }
}

/** No parts that go elsewhere, nothing that acts, and no sign that ends a path in some editor. */
function partsOf(path: string): string[] | null {
  if (path === '' || path.length > PATH_MAX || /[\\:?#\n\r\t]/.test(path)) return null;
  if (pieces(path).some((piece) => piece.sign !== undefined)) return null;
  const parts = path.split('/');
  return parts.every((part) => part !== '' && part !== '.' && part !== '..') ? parts : null;
}

function rootParts(root: string): string[] | null {
  return root.startsWith('/') ? partsOf(root.slice(1).replace(/\/$/, '')) : null;
}

/** The absolute path of a file below `root`; null when it is not there, or no such path. */
export function placeOf(path: string, root: string): string | null {
  const above = rootParts(root);
  if (!above) return null;
  const parts = path.startsWith('/') ? partsOf(path.slice(1)) : partsOf(path);
  if (!parts) return null;
  const whole = path.startsWith('/') ? parts : [...above, ...parts];
  const isBelow = whole.length > above.length && above.every((part, i) => part === whole[i]);
  return isBelow ? '/' + whole.join('/') : null;
}

/** The link, or null: no editor, no folder, or no path below it. */
export function editorLink(
  path: string,
  line: number | null,
  root: string | null | undefined,
  which: Editor = editor.value,
): string | null {
  if (which === 'none' || !root) return null;
  const place = placeOf(path, root);
  if (place === null) return null;
  const at = line !== null && Number.isInteger(line) && line > 0 && line <= LINE_MAX ? line : null;
  const escaped = place.split('/').map(encodeURIComponent).join('/');
  if (which === 'idea') return `idea://open?file=${escaped}${at === null ? '' : `&line=${at}`}`;
  return `${which}://file${escaped}${at === null ? '' : `:${at}`}`;
}

const PATHS = ['file_path', 'filePath', 'notebook_path', 'absolute_path', 'path'];
const LINES = ['line', 'line_number', 'start_line', 'startLine', 'offset'];

/** The file that the arguments of a call name, and the line when they name one. */
export function fileOf(input: unknown): {path: string; line: number | null} | null {
  if (input === null || typeof input !== 'object' || Array.isArray(input)) return null;
  const given = input as Record<string, unknown>;
  const own = (name: string): unknown => (Object.hasOwn(given, name) ? given[name] : undefined);
  const path = PATHS.map(own).find((one): one is string => typeof one === 'string' && one !== '');
  if (path === undefined) return null;
  const range = own('view_range');
  const numbers = [...LINES.map(own), Array.isArray(range) ? range[0] : undefined];
  const line = numbers.find((one): one is number => typeof one === 'number' && one > 0);
  return {path, line: line ?? null};
}
