// draw.ts - the lanes on a canvas: pure drawing, from numbers to pixels.

import {count} from '../../base/format';
import {plain} from '../../base/text';
import {colour} from '../../base/theme';
import {drawMark, OVERRIDE, type Reached} from './marks';
import {EDGE, MARK, type Lane, type Overview, type Window} from './types';

export const LANE = 34;
export const RULER = 20;

export interface Scene {
  width: number;
  height: number;
  from: number;
  to: number;
  scroll: number;
  lanes: readonly Lane[];
  near: Window | null;
  far: Overview | null;
  focusNode: number | null;
  focusCol: number | null;
  hover: number | null;
  /** Columns and lanes of the writes of the key in focus, by node. */
  writes: ReadonlyMap<number, number>;
  /** How nodes stand to the one whose reach is shown. */
  reached: ReadonlyMap<number, Reached>;
}

export interface Palette {
  [name: string]: string;
}

const NAMES = [
  'pane',
  'line',
  'line-strong',
  'text',
  'text-2',
  'text-3',
  'accent',
  'bad',
  'warn',
  'merge',
  'raised',
  'lit-line',
  'fork-natural',
  'fork-observation',
  'fork-injection',
  'accent-ground',
  'override',
  'snapshot',
  ...Array.from({length: 8}, (_, i) => `lane-${i}`),
];

export function palette(): Palette {
  const found: Palette = {};
  for (const name of NAMES) found[name] = colour(name);
  return found;
}

export function xOf(scene: Scene, col: number): number {
  return ((col - scene.from) / (scene.to - scene.from)) * scene.width;
}

export function yOf(scene: Scene, lane: number): number {
  return RULER + lane * LANE + LANE / 2 - scene.scroll;
}

export function laneColour(p: Palette, lane: number): string {
  return p[`lane-${lane % 8}`]!;
}

const FORK_COLOUR = ['', 'fork-natural', 'fork-observation', 'fork-injection', 'warn'];

export function draw(ctx: CanvasRenderingContext2D, scene: Scene, p: Palette): void {
  ctx.clearRect(0, 0, scene.width, scene.height);
  drawLanes(ctx, scene, p);
  if (scene.focusCol !== null) {
    const x = xOf(scene, scene.focusCol);
    ctx.fillStyle = p['accent']!;
    ctx.globalAlpha = 0.75;
    ctx.fillRect(Math.round(x), 0, 1, scene.height);
    ctx.globalAlpha = 1;
  }
  if (scene.near) drawNear(ctx, scene, scene.near, p);
  else if (scene.far) drawFar(ctx, scene, scene.far, p);
}

function drawLanes(ctx: CanvasRenderingContext2D, scene: Scene, p: Palette): void {
  for (let lane = 0; lane < scene.lanes.length; lane++) {
    const y = yOf(scene, lane);
    if (y < RULER - LANE || y > scene.height + LANE) continue;
    const of = scene.lanes[lane]!;
    ctx.fillStyle = p['line']!;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(0, Math.round(y + LANE / 2), scene.width, 1);
    ctx.globalAlpha = 0.5;
    ctx.fillStyle = of.verdict === 'invalid' ? p['bad']! : laneColour(p, lane);
    const x1 = Math.max(0, xOf(scene, of.first));
    const x2 = Math.min(scene.width, xOf(scene, of.last));
    if (x2 > x1) ctx.fillRect(x1, Math.round(y), x2 - x1, 1);
    ctx.globalAlpha = 1;
  }
}

/* --- close by --------------------------------------------------------------------------------- */

function drawNear(ctx: CanvasRenderingContext2D, scene: Scene, near: Window, p: Palette): void {
  const step = scene.width / (scene.to - scene.from);
  const size = Math.max(2.2, Math.min(6, step * 0.3));
  for (let i = 0; i + 7 < near.edges.length; i += 8) drawEdge(ctx, scene, near.edges, i, p);
  const {nodes} = near;
  for (let i = 0; i < nodes.n.length; i++) {
    const x = xOf(scene, nodes.col[i]!);
    const y = yOf(scene, nodes.lane[i]!);
    if (x < -40 || x > scene.width + 40 || y < RULER - 20 || y > scene.height + 20) continue;
    drawNode(ctx, scene, nodes, i, x, y, size, step, p);
  }
  if (step >= 26 && nodes.label) drawLabels(ctx, scene, nodes, step, p);
}

function drawEdge(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  e: readonly number[],
  i: number,
  p: Palette,
): void {
  const x1 = xOf(scene, e[i + 1]!);
  const y1 = yOf(scene, e[i + 2]!);
  const x2 = xOf(scene, e[i + 4]!);
  const y2 = yOf(scene, e[i + 5]!);
  const type = e[i + 6]!;
  const fork = e[i + 7]!;
  if (Math.max(x1, x2) < -20 || Math.min(x1, x2) > scene.width + 20) return;
  if (Math.max(y1, y2) < 0 || Math.min(y1, y2) > scene.height) return;
  ctx.lineWidth = type === EDGE.lineage ? 2 : 1.4;
  ctx.setLineDash(type === EDGE.merge ? [5, 3] : type === EDGE.causal ? [1.5, 3] : []);
  ctx.strokeStyle =
    type === EDGE.merge
      ? p['merge']!
      : type === EDGE.causal
        ? p['text-3']!
        : fork
          ? p[FORK_COLOUR[fork]!]!
          : laneColour(p, e[i + 5]!);
  ctx.globalAlpha = type === EDGE.causal ? 0.5 : 0.9;
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  if (y1 === y2) {
    ctx.lineTo(x2, y2);
  } else {
    const bend = Math.min(Math.max(10, (x2 - x1) * 0.5), 60);
    ctx.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  }
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

function shape(
  ctx: CanvasRenderingContext2D,
  kind: 'circle' | 'diamond' | 'triangle' | 'square',
  x: number,
  y: number,
  r: number,
): void {
  ctx.beginPath();
  if (kind === 'circle') {
    ctx.arc(x, y, r, 0, 2 * Math.PI);
  } else if (kind === 'square') {
    ctx.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  } else if (kind === 'diamond') {
    ctx.moveTo(x, y - r * 1.3);
    ctx.lineTo(x + r * 1.3, y);
    ctx.lineTo(x, y + r * 1.3);
    ctx.lineTo(x - r * 1.3, y);
    ctx.closePath();
  } else {
    ctx.moveTo(x, y - r * 1.35);
    ctx.lineTo(x + r * 1.3, y + r);
    ctx.lineTo(x - r * 1.3, y + r);
    ctx.closePath();
  }
}

function drawNode(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  nodes: Window['nodes'],
  i: number,
  x: number,
  y: number,
  r: number,
  step: number,
  p: Palette,
): void {
  const marks = nodes.marks[i]!;
  const fork = nodes.fork[i]!;
  const n = nodes.n[i]!;
  const own = laneColour(p, nodes.lane[i]!);
  const isFocus = n === scene.focusNode;
  if (isFocus || n === scene.hover) {
    ctx.beginPath();
    ctx.arc(x, y, r + 6, 0, 2 * Math.PI);
    ctx.fillStyle = p['accent-ground']!;
    ctx.fill();
    ctx.lineWidth = isFocus ? 2 : 1;
    ctx.strokeStyle = p['accent']!;
    ctx.stroke();
  }
  if (nodes.fold[i]! > 0) {
    const w = Math.max(8, Math.min(30, step * 0.8));
    ctx.beginPath();
    ctx.roundRect(x - w / 2, y - 7, w, 14, 7);
    ctx.fillStyle = p['raised']!;
    ctx.fill();
    ctx.lineWidth = 1.2;
    ctx.strokeStyle = own;
    ctx.stroke();
    if (w >= 22) {
      ctx.fillStyle = p['text-2']!;
      ctx.font = '10px system-ui, sans-serif';
      ctx.textAlign = 'center';
      ctx.textBaseline = 'middle';
      const folded = nodes.fold[i]!;
      ctx.fillText(folded < 1000 ? String(folded) : `${Math.round(folded / 1000)}k`, x, y + 0.5);
    }
    return;
  }
  const kind =
    fork === 2 ? 'diamond' : fork === 3 ? 'triangle' : marks & MARK.merge ? 'square' : 'circle';
  shape(ctx, kind, x, y, r);
  ctx.fillStyle = fork ? p[FORK_COLOUR[fork]!]! : marks & MARK.merge ? p['merge']! : own;
  ctx.fill();
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = p['pane']!;
  ctx.stroke();
  if (marks & MARK.head && r > 3) {
    ctx.beginPath();
    ctx.arc(x, y, r * 0.4, 0, 2 * Math.PI);
    ctx.fillStyle = p['pane']!;
    ctx.fill();
  }
  if (scene.writes.has(n)) {
    ctx.beginPath();
    ctx.arc(x, y, r + 3, 0, 2 * Math.PI);
    ctx.lineWidth = 2.2;
    ctx.strokeStyle = p['lit-line']!;
    ctx.stroke();
  }
  const reached = scene.reached.get(n);
  if (reached) {
    ctx.beginPath();
    ctx.arc(x, y, r + 4, 0, 2 * Math.PI);
    ctx.lineWidth = reached === 'follows' ? 1 : 2.4;
    ctx.strokeStyle = reached === 'follows' ? p['warn']! : p['bad']!;
    if (reached !== 'source') ctx.setLineDash(reached === 'follows' ? [1, 3] : []);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (marks & MARK.override) drawMark(ctx, OVERRIDE, x, y - r - 13, p['override']!);
  if (marks & (MARK.error | MARK.leftOut | MARK.noOrder))
    drawCross(ctx, x + r + 3, y - r - 3, p['bad']!);
  else if (marks & MARK.warning) drawCross(ctx, x + r + 3, y - r - 3, p['warn']!, true);
}

function drawCross(
  ctx: CanvasRenderingContext2D,
  x: number,
  y: number,
  tone: string,
  isWarning = false,
): void {
  ctx.strokeStyle = tone;
  ctx.lineWidth = 2;
  ctx.beginPath();
  if (isWarning) {
    ctx.moveTo(x, y - 3.5);
    ctx.lineTo(x, y + 1);
    ctx.moveTo(x, y + 3);
    ctx.lineTo(x, y + 4);
  } else {
    ctx.moveTo(x - 3, y - 3);
    ctx.lineTo(x + 3, y + 3);
    ctx.moveTo(x + 3, y - 3);
    ctx.lineTo(x - 3, y + 3);
  }
  ctx.stroke();
}

/* Words are below their node, as far as the next node of the lane leaves space. */
function drawLabels(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  nodes: Window['nodes'],
  step: number,
  p: Palette,
): void {
  ctx.font = '10.5px system-ui, sans-serif';
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  const nextCol: number[] = new Array<number>(nodes.n.length);
  const seen = new Map<number, number>();
  for (let i = nodes.n.length; i-- > 0; ) {
    nextCol[i] = seen.get(nodes.lane[i]!) ?? Infinity;
    seen.set(nodes.lane[i]!, nodes.col[i]!);
  }
  for (let i = 0; i < nodes.n.length; i++) {
    const text = nodes.label?.[i];
    const y = yOf(scene, nodes.lane[i]!);
    const x = xOf(scene, nodes.col[i]!);
    if (!text || y < RULER || x < -200 || x > scene.width) continue;
    const space = Math.min((nextCol[i]! - nodes.col[i]!) * step - 8, 160);
    if (space < 20) continue;
    ctx.fillStyle = nodes.n[i] === scene.focusNode ? p['text']! : p['text-2']!;
    ctx.fillText(fitted(ctx, plain(text, 60), space), x - 4, y + 15);
  }
}

export function fitted(
  ctx: {measureText(text: string): {width: number}},
  text: string,
  space: number,
): string {
  if (ctx.measureText(text).width <= space) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ctx.measureText(text.slice(0, middle) + '\u2026').width <= space) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? '' : text.slice(0, low) + '\u2026';
}

/* --- from far away ---------------------------------------------------------------------------- */

function drawFar(ctx: CanvasRenderingContext2D, scene: Scene, far: Overview, p: Palette): void {
  const {cells} = far;
  const width = (far.to - far.from) / Math.max(1, far.bins);
  let most = 1;
  for (let i = 2; i < cells.length; i += 4) most = Math.max(most, cells[i]!);
  for (let i = 0; i + 3 < cells.length; i += 4) {
    const y = yOf(scene, cells[i]!);
    const x = xOf(scene, far.from + cells[i + 1]! * width);
    const x2 = xOf(scene, far.from + (cells[i + 1]! + 1) * width);
    if (x2 < 0 || x > scene.width || y < RULER - LANE || y > scene.height + LANE) continue;
    const high = 4 + (LANE - 10) * Math.sqrt(cells[i + 2]! / most);
    const marks = cells[i + 3]!;
    ctx.fillStyle = laneColour(p, cells[i]!);
    ctx.globalAlpha = 0.85;
    ctx.fillRect(x, y - high / 2, Math.max(1, x2 - x - 0.25), high);
    ctx.globalAlpha = 1;
    const tone = marks & MARK.error ? p['bad'] : marks & (1 << 10) ? p['fork-injection'] : null;
    if (tone) {
      ctx.fillStyle = tone;
      ctx.fillRect(x, y - LANE / 2 + 2, Math.max(1.5, x2 - x), 4);
    }
  }
}

/** The node at a point of the picture, as its place in `near.nodes`; -1 for none. */
export function hit(scene: Scene, x: number, y: number): number {
  const near = scene.near;
  if (!near) return -1;
  let best = -1;
  let distance = 14 * 14;
  for (let i = 0; i < near.nodes.n.length; i++) {
    const dx = xOf(scene, near.nodes.col[i]!) - x;
    const dy = yOf(scene, near.nodes.lane[i]!) - y;
    const d = dx * dx + dy * dy;
    if (d < distance) {
      distance = d;
      best = i;
    }
  }
  return best;
}

export function describe(near: Window, i: number, lanes: readonly Lane[]): string {
  const {nodes} = near;
  const folded = nodes.fold[i]!;
  const agent = lanes[nodes.lane[i]!]?.agent ?? '?';
  const label = nodes.label?.[i];
  return folded > 0
    ? `${plain(agent, 60)}: ${count(folded)} folded events`
    : `${plain(agent, 60)}${label ? ': ' + plain(label, 80) : ''}`;
}
