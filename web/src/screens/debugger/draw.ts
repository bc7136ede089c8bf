// draw.ts - the lanes on a canvas: pure drawing, from numbers to pixels.

import {count, shortAgent, shortHex} from '../../base/format';
import {plain} from '../../base/text';
import {colour} from '../../base/theme';
import {drawMark, FAILED, OVERRIDE, type Reached} from './marks';
import {type Axis, depths, spanOf, tookWords, xAt} from './timeline';
import {EDGE, MARK, type Lane, type Overview, type Window} from './types';

/** The least height of a lane; what is left of the picture is divided among few lanes. */
export const LANE = 44;
const LANE_MOST = 68;
export const RULER = 20;

export interface Scene {
  width: number;
  height: number;
  from: number;
  to: number;
  scroll: number;
  /** Height of a lane. */
  lane: number;
  /** By time; null: by order. */
  axis: Axis | null;
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

/** As high as there is room for: two lanes need not leave most of the picture empty. */
export function laneHeight(lanes: number, height: number): number {
  const room = Math.floor((height - RULER - 8) / Math.max(1, lanes));
  return Math.max(LANE, Math.min(LANE_MOST, room));
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

/** Of a node; of one that is not in the window only its side is known. */
export function placeOf(scene: Scene, n: number, col: number): number {
  if (!scene.axis) return xOf(scene, col);
  return scene.axis.x.get(n) ?? (col < (scene.from + scene.to) / 2 ? -60 : scene.width + 60);
}

/** The column at a place of the picture, for zooming around it. */
export function colAt(scene: Scene, x: number): number {
  if (!scene.axis || !scene.near)
    return scene.from + (x / Math.max(1, scene.width)) * (scene.to - scene.from);
  const {nodes} = scene.near;
  let best = (scene.from + scene.to) / 2;
  let distance = Infinity;
  nodes.n.forEach((n, i) => {
    const away = Math.abs((scene.axis?.x.get(n) ?? Infinity) - x);
    if (away < distance) {
      distance = away;
      best = nodes.col[i]!;
    }
  });
  return best;
}

export function yOf(scene: Scene, lane: number): number {
  return RULER + lane * scene.lane + scene.lane / 2 - scene.scroll;
}

export function laneColour(p: Palette, lane: number): string {
  return p[`lane-${lane % 8}`]!;
}

const FORK_COLOUR = ['', 'fork-natural', 'fork-observation', 'fork-injection', 'warn'];

export function draw(ctx: CanvasRenderingContext2D, scene: Scene, p: Palette): void {
  ctx.clearRect(0, 0, scene.width, scene.height);
  drawLanes(ctx, scene, p);
  if (scene.focusCol !== null) {
    const x = placeOf(scene, scene.focusNode ?? -1, scene.focusCol);
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
    if (y < RULER - scene.lane || y > scene.height + scene.lane) continue;
    const of = scene.lanes[lane]!;
    ctx.fillStyle = p['line']!;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(0, Math.round(y + scene.lane / 2), scene.width, 1);
    ctx.globalAlpha = 0.5;
    ctx.fillStyle = of.verdict === 'invalid' ? p['bad']! : laneColour(p, lane);
    const x1 = scene.axis && of.first <= scene.to ? 0 : Math.max(0, xOf(scene, of.first));
    const x2 = scene.axis ? scene.width : Math.min(scene.width, xOf(scene, of.last));
    if (x2 > x1) ctx.fillRect(x1, Math.round(y), x2 - x1, 1);
    ctx.globalAlpha = 1;
  }
}

/* --- close by --------------------------------------------------------------------------------- */

function drawNear(ctx: CanvasRenderingContext2D, scene: Scene, near: Window, p: Palette): void {
  const step = scene.width / (scene.to - scene.from);
  const size = Math.max(2.2, Math.min(6, step * 0.3));
  if (scene.axis) drawBars(ctx, scene, scene.axis, near, p);
  for (let i = 0; i + 7 < near.edges.length; i += 8) drawEdge(ctx, scene, near.edges, i, p);
  const {nodes} = near;
  for (let i = 0; i < nodes.n.length; i++) {
    const x = placeOf(scene, nodes.n[i]!, nodes.col[i]!);
    const y = yOf(scene, nodes.lane[i]!);
    if (x < -40 || x > scene.width + 40 || y < RULER - 20 || y > scene.height + 20) continue;
    drawNode(ctx, scene, nodes, i, x, y, size, step, p);
  }
  if ((scene.axis || step >= 26) && nodes.label) drawLabels(ctx, scene, near, p);
}

/** How long each step took; what happened inside of another one is a thinner bar. */
function drawBars(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  axis: Axis,
  near: Window,
  p: Palette,
): void {
  const {nodes} = near;
  const depth = depths(near);
  for (let i = 0; i < nodes.n.length; i++) {
    const span = spanOf(near, i);
    if (!span) continue;
    const x1 = Math.max(-4, xAt(axis, span.began));
    const x2 = Math.min(scene.width + 4, xAt(axis, span.ended));
    const y = yOf(scene, nodes.lane[i]!);
    if (x2 < 0 || x1 > scene.width || y < RULER - 20 || y > scene.height + 20) continue;
    const high = 15 - 5 * depth[i]!;
    ctx.fillStyle = nodes.marks[i]! & MARK.failed ? p['bad']! : laneColour(p, nodes.lane[i]!);
    ctx.globalAlpha = 0.3;
    ctx.fillRect(x1, y - high / 2, Math.max(2, x2 - x1), high);
    ctx.globalAlpha = 0.9;
    ctx.fillRect(x1, y - high / 2, 1.5, high);
    ctx.fillRect(Math.max(x1, x2 - 1.5), y - high / 2, 1.5, high);
    ctx.globalAlpha = 1;
  }
}

function drawEdge(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  e: readonly number[],
  i: number,
  p: Palette,
): void {
  const x1 = placeOf(scene, e[i]!, e[i + 1]!);
  const y1 = yOf(scene, e[i + 2]!);
  const x2 = placeOf(scene, e[i + 3]!, e[i + 4]!);
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
  if (marks & MARK.failed)
    drawMark(ctx, FAILED, x - (marks & MARK.override ? 12 : 0), y - r - 13, p['bad']!);
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
function drawLabels(ctx: CanvasRenderingContext2D, scene: Scene, near: Window, p: Palette): void {
  ctx.font = '10.5px system-ui, sans-serif';
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  for (const {i, x, space} of labelPlaces(scene, near)) {
    const {nodes} = near;
    const y = yOf(scene, nodes.lane[i]!) + 20;
    if (y < RULER || y > scene.height + 20) continue;
    const took = tookWords(spanOf(near, i));
    const isFocus = nodes.n[i] === scene.focusNode;
    ctx.fillStyle = isFocus ? p['text']! : p['text-2']!;
    const words = plain(shortHex(nodes.label?.[i] ?? ''), 120);
    const isTall = scene.lane >= 54 && took !== '';
    ctx.fillText(fitted(ctx, isTall || !took ? words : `${words} \u00b7 ${took}`, space), x - 4, y);
    if (!isTall) continue;
    ctx.fillStyle = p['text-3']!;
    ctx.fillText(fitted(ctx, took, space), x - 4, y + 12);
  }
}

/** Which nodes have a label, where, and how wide it may be: never as far as the next one's. */
export function labelPlaces(scene: Scene, near: Window): {i: number; x: number; space: number}[] {
  const {nodes} = near;
  const xs = nodes.n.map((n, i) => placeOf(scene, n, nodes.col[i]!));
  const order = xs.map((_, i) => i).sort((a, b) => xs[b]! - xs[a]!);
  const next = new Map<number, number>();
  const places: {i: number; x: number; space: number}[] = [];
  for (const i of order) {
    const lane = nodes.lane[i]!;
    const x = xs[i]!;
    const space = Math.min(
      (next.get(lane) ?? Infinity) - x - 8,
      Math.max(24, scene.width - x),
      300,
    );
    const isShown = !!nodes.label?.[i] && x > -300 && x < scene.width && space >= 24;
    if (isShown) places.push({i, x, space});
    if (isShown || nodes.fold[i]! > 0 || !scene.axis) next.set(lane, x);
  }
  return places;
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
    if (x2 < 0 || x > scene.width || y < RULER - scene.lane || y > scene.height + scene.lane)
      continue;
    const high = 4 + (scene.lane - 10) * Math.sqrt(cells[i + 2]! / most);
    const marks = cells[i + 3]!;
    ctx.fillStyle = laneColour(p, cells[i]!);
    ctx.globalAlpha = 0.85;
    ctx.fillRect(x, y - high / 2, Math.max(1, x2 - x - 0.25), high);
    ctx.globalAlpha = 1;
    const tone =
      marks & (MARK.error | MARK.failed)
        ? p['bad']
        : marks & (1 << 10)
          ? p['fork-injection']
          : null;
    if (tone) {
      ctx.fillStyle = tone;
      ctx.fillRect(x, y - scene.lane / 2 + 2, Math.max(1.5, x2 - x), 4);
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
    const dx = placeOf(scene, near.nodes.n[i]!, near.nodes.col[i]!) - x;
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
  const agent = shortAgent(lanes[nodes.lane[i]!]?.agent ?? '?');
  const label = nodes.label?.[i];
  const took = tookWords(spanOf(near, i));
  const more = `${took ? `, ${took}` : ''}${nodes.marks[i]! & MARK.failed ? ', failed' : ''}`;
  return folded > 0
    ? `${plain(agent, 60)}: ${count(folded)} folded events`
    : `${plain(agent, 60)}${label ? ': ' + plain(shortHex(label), 80) : ''}${more}`;
}
