// marks.ts - marks of the strip below the lanes: kinds, symbols, and navigation between them. Pure
// except for drawing.

export interface MarkKind {
  /** One of them, for people. */
  word: string;
  words: string;
  /** In a box of 10 by 10. */
  path: string;
  isFilled: boolean;
  /** A colour of theme.css; the shape says the same. */
  tone: string;
  /** 0: the row of findings, forks and merges; 1: overrides, snapshots and errors; 2: writes. */
  row: 0 | 1 | 2;
  /** Goes to the next one; the capital letter goes back. */
  key?: string;
}

/** In the order in which the server numbers them (docs/formats/view.md); writes are the page's own. */
export const KINDS: readonly MarkKind[] = [
  {
    word: 'violation',
    words: 'violations',
    path: 'M2 2L8 8M8 2L2 8',
    isFilled: false,
    tone: 'bad',
    row: 0,
    key: 'v',
  },
  {
    word: 'warning',
    words: 'warnings',
    path: 'M5 1V6M5 8V9.4',
    isFilled: false,
    tone: 'warn',
    row: 0,
  },
  {
    word: 'natural fork',
    words: 'natural forks',
    path: 'M5 2A3 3 0 1 1 4.99 2Z',
    isFilled: true,
    tone: 'fork-natural',
    row: 0,
  },
  {
    word: 'observation fork',
    words: 'observation forks',
    path: 'M5 1L9 5L5 9L1 5Z',
    isFilled: true,
    tone: 'fork-observation',
    row: 0,
  },
  {
    word: 'injection fork',
    words: 'injection forks',
    path: 'M5 1L9 9H1Z',
    isFilled: true,
    tone: 'fork-injection',
    row: 0,
  },
  {word: 'merge', words: 'merges', path: 'M2 2H8V8H2Z', isFilled: true, tone: 'merge', row: 0},
  {
    word: 'override',
    words: 'overrides',
    path: 'M5 1.2A3.8 3.8 0 1 1 4.99 1.2ZM2.4 7.6L7.6 2.4',
    isFilled: false,
    tone: 'override',
    row: 1,
    key: 'o',
  },
  {
    word: 'snapshot',
    words: 'snapshots',
    path: 'M2.5 9.5V0.8L9 3.4L2.5 6V9.5Z',
    isFilled: true,
    tone: 'snapshot',
    row: 1,
    key: 's',
  },
  {
    word: 'error',
    words: 'errors',
    path: 'M3.2 0.8H6.8L9.2 3.2V6.8L6.8 9.2H3.2L0.8 6.8V3.2Z',
    isFilled: true,
    tone: 'bad',
    row: 1,
    key: 'e',
  },
  {
    word: 'write of the key',
    words: 'writes of the key',
    path: 'M5 2A3 3 0 1 1 4.99 2Z',
    isFilled: true,
    tone: 'lit-line',
    row: 2,
  },
];

export const OVERRIDE = 6;
export const FAILED = 8;
export const WRITE = 9;
/** Where a row's signs begin, from the top of the strip. */
export const ROW_TOP = [1, 13, 47] as const;

export interface Mark {
  kind: number;
  col: number;
  n: number;
}

/** `marks` as the overview has them, and the writes of the key in focus. */
export function marksOf(
  marks: readonly number[],
  writes: readonly {col: number; n: number}[],
): Mark[] {
  const list: Mark[] = [];
  for (let i = 0; i + 2 < marks.length; i += 3)
    list.push({kind: marks[i]!, col: marks[i + 1]!, n: marks[i + 2]!});
  for (const {col, n} of writes) list.push({kind: WRITE, col, n});
  return list;
}

export type Reached = 'source' | 'carries' | 'follows';

/** How steps stand to the one that was asked about; those that are not in it were not reached. */
export function reachedBy(
  reach: {
    node: {n: number};
    follows: readonly number[];
    carries: readonly {n: number}[];
  } | null,
): Map<number, Reached> {
  const found = new Map<number, Reached>();
  if (!reach) return found;
  for (const n of reach.follows) found.set(n, 'follows');
  for (const {n} of reach.carries) found.set(n, 'carries');
  return found.set(reach.node.n, 'source');
}

export function counts(marks: readonly Mark[]): number[] {
  const many = new Array<number>(KINDS.length).fill(0);
  for (const {kind} of marks) if (kind < many.length) many[kind]!++;
  return many;
}

/** The nearest mark after (or before) a position; marks of one column follow each other by node. */
export function nextMark(
  marks: readonly Mark[],
  at: {col: number; n: number} | null,
  by: -1 | 1,
  kind?: number,
): Mark | null {
  const order = (a: {col: number; n: number}, b: {col: number; n: number}): number =>
    (a.col - b.col || a.n - b.n) * by;
  let best: Mark | null = null;
  for (const mark of marks)
    if (
      (kind === undefined || mark.kind === kind) &&
      (!at || order(mark, at) > 0) &&
      (!best || order(mark, best) < 0)
    )
      best = mark;
  return best;
}

/** The same, and after the last one the first again: for the legend, which has one button. */
export function roundMark(
  marks: readonly Mark[],
  at: {col: number; n: number} | null,
  kind: number,
): Mark | null {
  return nextMark(marks, at, 1, kind) ?? nextMark(marks, null, 1, kind);
}

const paths = new Map<number, Path2D>();

export function drawMark(
  ctx: CanvasRenderingContext2D,
  kind: number,
  x: number,
  y: number,
  tone: string,
): void {
  const of = KINDS[kind];
  if (!of) return;
  let path = paths.get(kind);
  if (!path) {
    path = new Path2D(of.path);
    paths.set(kind, path);
  }
  ctx.save();
  ctx.translate(x - 5, y);
  ctx.fillStyle = ctx.strokeStyle = tone;
  ctx.lineWidth = 1.8;
  if (of.isFilled) ctx.fill(path);
  else ctx.stroke(path);
  ctx.restore();
}
