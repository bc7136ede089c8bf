// diff.ts - parses a unified diff of git into files and rows, and matches paths against a contract
// (run.md 7). Inside a hunk lines are counted, so a line that looks like a header is text.

export type RowKind = 'file' | 'meta' | 'hunk' | 'add' | 'del' | 'same';

export interface DiffRow {
  kind: RowKind;
  text: string;
  file: number;
  oldLine: number;
  newLine: number;
}

export type FileKind = 'added' | 'deleted' | 'renamed' | 'copied' | 'changed';

export interface DiffFile {
  path: string;
  /** The other side of a rename or copy. */
  from: string | null;
  kind: FileKind;
  added: number;
  removed: number;
  isBinary: boolean;
  /** "100644 to 100755", where it changed. */
  mode: string;
  /** Its first row. */
  row: number;
}

export interface Diff {
  files: DiffFile[];
  rows: DiffRow[];
  /** Length of the longest line, in characters. */
  columns: number;
  /** True when there was more than is shown. */
  isCut: boolean;
}

const ROWS_MAX = 400_000;

const ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  '"': 34,
  '\\': 92,
};

/** A name between quotes as git writes it; `end` is after the closing one. */
export function unquote(text: string, start = 0): {name: string; end: number} | null {
  if (text[start] !== '"') return null;
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    if (text[at] !== '\\') {
      const letter = String.fromCodePoint(text.codePointAt(at)!);
      bytes.push(...encoder.encode(letter));
      at += letter.length;
      continue;
    }
    const octal = /^[0-3][0-7]{2}/.exec(text.slice(at + 1, at + 4));
    const letter = text[at + 1] ?? '';
    bytes.push(octal ? parseInt(octal[0], 8) : (ESCAPES[letter] ?? 63));
    at += octal ? 4 : 2;
  }
  if (text[at] !== '"') return null;
  return {name: new TextDecoder().decode(new Uint8Array(bytes)), end: at + 1};
}

function name(text: string, prefix: string): string | null {
  const whole = text.startsWith('"') ? (unquote(text)?.name ?? text) : text.replace(/\t$/, '');
  if (whole === '/dev/null') return null;
  return whole.startsWith(prefix) ? whole.slice(prefix.length) : whole;
}

/** "a/P b/P" of a header; only needed where no other line names the file. */
function namesOf(rest: string): string {
  const quoted = unquote(rest);
  if (quoted) return quoted.name.replace(/^a\//, '');
  const middle = (rest.length - 1) / 2;
  if (rest[middle] === ' ' && rest.slice(2, middle) === rest.slice(middle + 3))
    return rest.slice(2, middle);
  const second = rest.indexOf(' b/');
  return second < 0 ? rest : rest.slice(second + 3);
}

class Parser {
  readonly diff: Diff = {files: [], rows: [], columns: 0, isCut: false};
  private file: DiffFile | null = null;
  private oldLeft = 0;
  private newLeft = 0;
  private oldLine = 0;
  private newLine = 0;

  line(text: string): void {
    if (this.oldLeft > 0 || this.newLeft > 0) return this.content(text);
    if (text.startsWith('diff --git ')) return this.begin(text.slice(11));
    if (!this.file) return;
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(text);
    if (hunk) {
      this.oldLine = Number(hunk[1]);
      this.newLine = Number(hunk[3]);
      this.oldLeft = hunk[2] === undefined ? 1 : Number(hunk[2]);
      this.newLeft = hunk[4] === undefined ? 1 : Number(hunk[4]);
      this.put('hunk', text);
    } else {
      this.header(this.file, text);
    }
  }

  private begin(rest: string): void {
    this.file = {
      path: namesOf(rest),
      from: null,
      kind: 'changed',
      added: 0,
      removed: 0,
      isBinary: false,
      mode: '',
      row: this.diff.rows.length,
    };
    this.diff.files.push(this.file);
    this.put('file', '');
  }

  private header(file: DiffFile, text: string): void {
    const space = text.indexOf(' ');
    if (text.startsWith('--- ')) {
      const old = name(text.slice(4), 'a/');
      if (old !== null && file.kind === 'deleted') file.path = old;
    } else if (text.startsWith('+++ ')) {
      file.path = name(text.slice(4), 'b/') ?? file.path;
    } else if (text.startsWith('new file mode')) {
      file.kind = 'added';
      if (!/ 100(644|755)$/.test(text)) file.mode = text.slice(14);
    } else if (text.startsWith('deleted file mode')) {
      file.kind = 'deleted';
    } else if (/^(rename|copy) from /.test(text)) {
      file.kind = text[0] === 'r' ? 'renamed' : 'copied';
      file.from = name(text.slice(text[0] === 'r' ? 12 : 10), '');
    } else if (/^(rename|copy) to /.test(text)) {
      file.path = name(text.slice(text[0] === 'r' ? 10 : 8), '') ?? file.path;
    } else if (text.startsWith('old mode ')) {
      file.mode = text.slice(9);
    } else if (text.startsWith('new mode ')) {
      file.mode += ` to ${text.slice(9)}`;
    } else if (text.startsWith('Binary files ') || text === 'GIT binary patch') {
      file.isBinary = true;
      this.put('meta', 'Binary content');
    } else if (text.startsWith('\\')) {
      this.put('meta', text.slice(2));
    } else if (space < 0 && text !== '' && !file.isBinary) {
      this.put('meta', text);
    }
  }

  private content(text: string): void {
    const file = this.file!;
    const sign = text[0];
    if (sign === '\\') return this.put('meta', text.slice(2));
    if (sign === '+') {
      file.added++;
      this.newLeft--;
      this.put('add', text.slice(1), 0, this.newLine++);
    } else if (sign === '-') {
      file.removed++;
      this.oldLeft--;
      this.put('del', text.slice(1), this.oldLine++, 0);
    } else if (sign === ' ' || sign === undefined) {
      this.oldLeft--;
      this.newLeft--;
      this.put('same', text.slice(1), this.oldLine++, this.newLine++);
    } else {
      // A hunk that is shorter than it says: what follows is read as a header again.
      this.oldLeft = this.newLeft = 0;
      this.line(text);
    }
  }

  private put(kind: RowKind, text: string, oldLine = 0, newLine = 0): void {
    if (text.length > this.diff.columns) this.diff.columns = text.length;
    this.diff.rows.push({kind, text, file: this.diff.files.length - 1, oldLine, newLine});
  }
}

export function parseDiff(text: string): Diff {
  const parser = new Parser();
  let at = 0;
  while (at < text.length) {
    if (parser.diff.rows.length >= ROWS_MAX) {
      parser.diff.isCut = true;
      break;
    }
    const end = text.indexOf('\n', at);
    parser.line(end < 0 ? text.slice(at) : text.slice(at, end));
    at = end < 0 ? text.length : end + 1;
  }
  return parser.diff;
}

/** Whether an entry of allowed_paths covers a path: component by component, byte by byte. */
export function covers(entry: string, path: string): boolean {
  const parts = entry.split('/').filter((part) => part !== '' && part !== '.');
  const of = path.split('/');
  if (parts.length === 0 || of.length < parts.length + (entry.endsWith('/') ? 1 : 0)) return false;
  return parts.every((part, i) => part === of[i]);
}

/** The sides of a file that are not covered by any entry. */
export function outside(file: DiffFile, allowed: readonly string[]): string[] {
  const sides = file.from === null ? [file.path] : [file.from, file.path];
  return sides.filter((path) => !allowed.some((entry) => covers(entry, path)));
}
