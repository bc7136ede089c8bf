// model.ts - the state that the debugger's panes share: the history, the visible part, the node in
// focus, and the writes of the key in focus. The focus itself is in the address (base/focus.ts).

import {batch, computed, effect, signal} from '@preact/signals';
import {get, segments} from '../../base/api';
import type {LatticeGrep, LatticeSaid, ViewReach} from '../../base/api-types';
import {focus, focusKey, focusNode} from '../../base/focus';
import {Loader} from '../../base/load';
import {adjust, route} from '../../base/router';
import {may, session} from '../../base/session';
import {follow as followStream, type Stream} from '../../base/stream';
import {laneHeight, RULER} from './draw';
import {edgeNames, extentOf, isRun, isSession, nameOf, type Part, partOf} from './part';
import {FAILED, marksOf, nextMark, reachedBy, roundMark, type Mark} from './marks';
import type {NodeDetail, Overview, Summary, Window, Writes} from './types';

/** More columns than this in view are drawn as counts. */
export const CLOSE_COLUMNS = 1200;
/** By time as many as one window has nodes. */
const TIME_COLUMNS = 2000;
/** Fewer than this are drawn with their words. */
const LABEL_COLUMNS = 110;
/** In so many columns an overview has every mark. */
const ALL_MARKS = 1000;
/** The server shows one version of a history for a second, longer when it is long. */
const RENEW_MS = 1100;
/** Looks for what was announced, each after twice as long. */
const RENEW_TRIES = 5;

export interface Hits {
  words: string;
  at: number;
  nodes: readonly string[];
  problem: string | null;
}

export class Model {
  readonly path: string;
  readonly summary = new Loader<Summary>();
  readonly whole = new Loader<Overview>();
  readonly near = new Loader<Window>();
  readonly far = new Loader<Overview>();
  readonly node = new Loader<NodeDetail>();
  readonly writes = new Loader<Writes>();
  readonly said = new Loader<LatticeSaid>();
  readonly reach = new Loader<ViewReach>();
  /** The steps that have the words that were looked for; `at` is the one that is shown. */
  readonly hits = signal<Hits | null>(null);
  /** The step of which was asked what it reached. */
  readonly reachAsked = signal<number | null>(null);
  /** How each step stands to that one, by number. */
  readonly reached = computed(() =>
    reachedBy(this.reachAsked.value === null ? null : this.reach.signal.value.value),
  );
  /** Text that is selected in a step. */
  readonly selected = signal<{n: number; text: string} | null>(null);
  /** What was asked about, until a key is in focus or it is closed. */
  readonly saidAsked = signal<{n: number; text: string} | null>(null);

  /** Quiet stretches folded: as the address says, else as the server chose. */
  readonly fold = computed(() => {
    const wanted = route.value.query['fold'];
    return wanted ? wanted === '1' : (this.summary.signal.value.value?.fold ?? false);
  });
  private readonly loadedFold = computed(() => route.value.query['fold'] || undefined);
  /** Columns in view; may reach beyond both ends. */
  readonly view = signal<{from: number; to: number}>({from: 0, to: 60});
  /** First lane in view, in pixels. */
  readonly scroll = signal(0);
  /** Of the picture, in pixels. */
  readonly height = signal(300);
  /** What the pointer is over. */
  readonly hover = signal<{n: number; x: number; y: number; text: string} | null>(null);

  readonly lanes = computed(() => this.summary.signal.value.value?.lanes ?? []);
  readonly columns = computed(() => this.summary.signal.value.value?.columns ?? 0);
  /** The node in focus, as far as it is known; also while the next one is on its way. */
  readonly detail = computed(() => this.node.signal.value.value);
  readonly marks = computed(() => {
    const writes = focus.key.value ? this.writes.signal.value.value : null;
    return marksOf(
      this.whole.signal.value.value?.marks ?? [],
      writes ? [...writes.changes, ...(writes.next ? [writes.next] : [])] : [],
    );
  });
  /** Whether the history has times at all. */
  readonly isTimed = computed(() => (this.summary.signal.value.value?.time.length ?? 0) === 2);
  /** The lanes by time, as the address says; else by order. */
  readonly byTime = computed(() => this.isTimed.value && route.value.query['axis'] === 'time');
  readonly isClose = computed(
    () =>
      this.view.value.to - this.view.value.from <=
      (this.byTime.value ? TIME_COLUMNS : CLOSE_COLUMNS),
  );

  private readonly ends: (() => void)[] = [];
  private wasFitted = false;
  /** What is recorded appears by itself. */
  readonly isUp = signal(false);
  private readonly stream: Stream | null;
  private timer = 0;

  /** Of the history that has the part, as far as it is known. */
  readonly entries = signal(0);

  /** `part`: only that of a long history; null = all of it. */
  constructor(
    private readonly name: string,
    readonly part: Part | null = null,
  ) {
    this.entries.value = part?.entries ?? 0;
    this.path = `/api/v1/view/${part ? `part/${part.from}/` : ''}${segments(name)}`;
    this.ends.push(
      effect(() => {
        const fold = this.loadedFold.value;
        this.wasFitted = false;
        this.summary.load(`${this.path}/summary`, {fold});
        this.whole.load(`${this.path}/overview`, {fold, bins: 600});
      }),
      effect(() => this.fitOnce()),
      effect(() => this.loadView()),
      effect(() => this.loadNode()),
      effect(() => this.loadWrites()),
      effect(() => this.follow()),
    );
    const isRecorded = name === 'all' || name.startsWith('agent/') || name.startsWith('session/');
    this.stream =
      isRecorded && session.value?.traces && may('trace:read')
        ? followStream(
            '/api/v1/feed?hints=true',
            name.startsWith('session/') ? ['session'] : ['trace', 'step'],
            () => this.renewSoon(1),
            (up) => (this.isUp.value = up),
          )
        : null;
  }

  close(): void {
    this.stream?.close();
    clearTimeout(this.timer);
    for (const end of this.ends) end();
    for (const loader of [
      this.summary,
      this.whole,
      this.near,
      this.far,
      this.node,
      this.writes,
      this.said,
      this.reach,
    ])
      loader.stop();
  }

  get foldQuery(): string | undefined {
    return this.loadedFold.value;
  }

  private fitOnce(): void {
    const columns = this.columns.value;
    if (columns === 0 || this.wasFitted) return;
    this.wasFitted = true;
    const at = this.detail.peek();
    const width = Math.min(columns, 46);
    const middle = at && at.col < columns ? at.col : width / 2;
    this.view.value =
      columns <= 60
        ? {from: -1, to: columns + 0.5}
        : clampView(middle - width / 2, middle + width / 2, columns);
  }

  /** Asks for half a view more on both sides, and again only when the view leaves that. */
  private loadView(): void {
    const {from, to} = this.view.value;
    const columns = this.columns.value;
    if (columns === 0) return;
    const span = to - from;
    const step = Math.max(8, 2 ** Math.ceil(Math.log2(span / 2)));
    const first = Math.max(0, Math.floor(from / step - 1) * step);
    const last = Math.min(columns, Math.ceil(to / step + 1) * step);
    if (this.isClose.value)
      this.near.load(`${this.path}/window`, {
        fold: this.foldQuery,
        from: first,
        to: last,
        labels: span <= LABEL_COLUMNS ? 1 : undefined,
        spans: this.isTimed.value && (this.byTime.value || span <= LABEL_COLUMNS) ? 1 : undefined,
      });
    else
      this.far.load(`${this.path}/overview`, {
        fold: this.foldQuery,
        from: first,
        to: last,
        bins: 1200,
      });
  }

  private loadNode(): void {
    const node = focus.node.value;
    if (node) this.node.load(`${this.path}/node`, {node, fold: this.foldQuery});
  }

  private loadWrites(): void {
    const key = focus.key.value;
    const at = this.detail.value;
    if (this.part) return;
    if (key) {
      this.saidAsked.value = null;
      this.reachAsked.value = null;
    }
    if (!key || key.key === null || !at || (key.section !== 'memory' && key.section !== 'beliefs'))
      return;
    this.writes.load(`${this.path}/writes`, {
      node: '#' + at.n,
      section: key.section,
      key: key.key,
      fold: this.foldQuery,
    });
  }

  /** Brings the node in focus into view. */
  private follow(): void {
    const at = this.detail.value;
    const columns = this.columns.value;
    if (!at || columns === 0) return;
    const {from, to} = this.view.peek();
    const span = to - from;
    const lane = laneHeight(this.lanes.peek().length, this.height.peek());
    const y = at.lane * lane;
    const high = Math.max(lane, this.height.peek() - RULER);
    if (y < this.scroll.peek()) this.scroll.value = y;
    else if (y + lane > this.scroll.peek() + high) this.scroll.value = y + lane - high;
    if (at.col < from + span * 0.05 || at.col > to - span * 0.05)
      this.view.value = clampView(at.col - span / 2, at.col + span / 2, columns);
  }

  /* --- what is recorded meanwhile ---------------------------------------------------------------- */

  private renewSoon(attempt: number): void {
    if (this.timer) return;
    this.timer = window.setTimeout(
      () => {
        this.timer = 0;
        void this.renew(attempt);
      },
      RENEW_MS * 2 ** (attempt - 1),
    );
  }

  /** Reads the history again; when it has not grown, what was announced may be of another one, or late. */
  private async renew(attempt: number): Promise<void> {
    const before = this.summary.signal.peek().value;
    const at = this.detail.peek();
    if (!before) return;
    const fold = this.loadedFold.peek();
    const {from, to} = this.view.peek();
    const sawAll = from <= 0 && to >= before.columns - 0.5;
    if (this.part)
      void extentOf(this.name, null).then(
        (extent) => (this.entries.value = extent.entries),
        () => undefined,
      );
    const summary = await this.summary.renew(`${this.path}/summary`, {fold});
    if (!summary || summary.nodes === before.nodes) {
      if (attempt < RENEW_TRIES) this.renewSoon(attempt + 1);
      return;
    }
    this.near.stop();
    this.far.stop();
    if (sawAll && summary.columns <= 60) this.fit();
    this.loadView();
    void this.whole.renew(`${this.path}/overview`, {fold, bins: 600});
    await this.renewNode(at);
  }

  /** The newest event moves on with the history; a chosen one stays, also where its number changed. */
  private async renewNode(at: NodeDetail | null): Promise<void> {
    const node = focus.node.peek();
    if (!node) return;
    if (node.startsWith('#') && at && node === '#' + at.n) {
      const name = nameOf(this.name, at) ?? at.hash;
      const fresh = await get<NodeDetail>(`${this.path}/node`, {node: name}).catch(() => null);
      if (fresh && fresh.n !== at.n && focus.node.peek() === node)
        return adjust({node: '#' + fresh.n}, false);
    }
    this.writes.stop();
    await this.node.renew(`${this.path}/node`, {node, fold: this.foldQuery});
  }

  /* --- what people do --------------------------------------------------------------------------- */

  zoom(by: number, around?: number): void {
    const {from, to} = this.view.value;
    const at = around ?? this.detail.value?.col ?? (from + to) / 2;
    const span = Math.max(6, Math.min((to - from) * by, this.columns.value + 3));
    const share = Math.max(0, Math.min(1, (at - from) / (to - from)));
    this.view.value = clampView(at - span * share, at + span * (1 - share), this.columns.value);
  }

  pan(columns: number): void {
    const {from, to} = this.view.value;
    this.view.value = clampView(from + columns, to + columns, this.columns.value);
  }

  fit(): void {
    this.view.value = {from: -1, to: this.columns.value + 0.5};
  }

  /** By time or by order. */
  toggleAxis(): void {
    if (this.isTimed.value) adjust({axis: this.byTime.value ? null : 'time'});
  }

  toggleFold(): void {
    batch(() => {
      this.near.stop();
      adjust({fold: this.fold.value ? '0' : '1'});
    });
  }

  select(n: number, scrub = false): void {
    focusNode('#' + n, {scrub});
  }

  step(by: -1 | 1): void {
    const at = this.detail.value;
    const next = at && (by < 0 ? at.prev_own : at.next_own);
    if (next !== null && next !== undefined) this.select(next, true);
    else if (at && this.part) this.goBeyond(at, by);
  }

  /* --- to other parts of a long history --------------------------------------------------------- */

  /** Past the edge of a part: to the one that has what is on both sides of it. */
  private goBeyond(at: NodeDetail, by: -1 | 1): void {
    const part = this.part;
    if (!part || (this.name.startsWith('agent/') && at.agent !== this.agent)) return;
    const earlier = this.earlier();
    const before = isRun(this.name)
      ? `#${part.from - 1 - earlier}`
      : isSession(this.name)
        ? at.place
        : at.prev_hash;
    if (by < 0 && part.from > 0) adjust({part: String(earlier), node: before}, false);
    else if (by > 0 && this.hasLater)
      adjust({part: String(this.later()), node: nameOf(this.name, at)}, false);
  }

  /** Whether there are entries after the part. */
  get hasLater(): boolean {
    return this.part !== null && this.part.from + this.part.size < this.entries.value;
  }

  private get agent(): string {
    return this.name.slice(this.name.indexOf('/') + 1);
  }

  private earlier(): number {
    return this.part ? Math.max(0, this.part.from - this.part.size / 2) : 0;
  }

  private later(): number {
    const part = this.part!;
    const entries = this.entries.peek();
    const last = partOf(entries - 1, {entries, size: part.size});
    return Math.min(part.from + part.size / 2, Math.max(last.from, 0));
  }

  /** With the first of this part in focus, or its newest: it is in the other part, too. */
  async goPart(later: boolean): Promise<void> {
    const edge = await this.edge(later);
    const from = later ? this.later() : this.earlier();
    adjust({part: String(from), node: edge && nameOf(this.name, edge)});
  }

  /** The first or the newest step of this part that the other part has, too. */
  private async edge(newest: boolean): Promise<NodeDetail | null> {
    let found: NodeDetail | null = null;
    for (const node of edgeNames(this.name, this.part!, this.entries.peek(), newest))
      found ??= await get<NodeDetail>(`${this.path}/node`, {node}).catch(() => null);
    return found;
  }

  /** All of it, which is read then, with the same step in focus. */
  openWhole(): void {
    const at = this.detail.peek();
    adjust({part: 'all', node: at && nameOf(this.name, at)});
  }

  /** The nearest node of the next lane that has one in view. */
  stepLane(by: -1 | 1): void {
    const at = this.detail.value;
    const near = this.near.signal.value.value;
    if (!at || !near) return;
    for (let lane = at.lane + by; lane >= 0 && lane < this.lanes.value.length; lane += by) {
      let best = -1;
      near.nodes.lane.forEach((of, i) => {
        if (
          of === lane &&
          (best < 0 ||
            Math.abs(near.nodes.col[i]! - at.col) < Math.abs(near.nodes.col[best]! - at.col))
        )
          best = i;
      });
      if (best >= 0) return this.select(near.nodes.n[best]!, true);
    }
  }

  /** Words in the history: the first hit, and with the same words the next or the previous one. */
  async findWords(words: string, by: -1 | 1 = 1): Promise<void> {
    const known = this.hits.value;
    if (known?.words === words) return this.stepHit(by);
    const found = await get<LatticeGrep>(`${this.path}/grep`, {
      q: words,
      fold: this.foldQuery,
    }).catch((error: Error) => error);
    this.hits.value = {
      words,
      at: -1,
      nodes: found instanceof Error ? [] : found.hits.map((hit) => hit.node),
      problem: found instanceof Error ? found.message : null,
    };
    this.stepHit(1);
  }

  stepHit(by: -1 | 1): void {
    const known = this.hits.value;
    if (!known || known.nodes.length === 0) return;
    const count = known.nodes.length;
    const at = known.at < 0 ? 0 : (known.at + by + count) % count;
    this.hits.value = {...known, at};
    adjust({node: known.nodes[at]!, q: known.words});
  }

  /** What else a step reached: marked on the lanes and in the conversation until it is closed. */
  askReach(n: number): void {
    focusKey(null);
    this.saidAsked.value = null;
    this.reachAsked.value = n;
    if (this.part) return;
    this.reach.load(`${this.path}/reach`, {node: '#' + n, fold: this.foldQuery}, false);
  }

  /** Who said a text first, of the steps before one. */
  askSaid(n: number, text: string): void {
    focusKey(null);
    this.reachAsked.value = null;
    this.saidAsked.value = {n, text};
    if (this.part) return;
    this.said.load(`${this.path}/said`, {node: '#' + n, text, fold: this.foldQuery}, false);
  }

  previousWrite(): void {
    const at = this.detail.value;
    const before = this.writes.signal.value.value?.changes.find((write) => write.n !== at?.n);
    if (before) this.select(before.n);
  }

  nextWrite(): void {
    const next = this.writes.signal.value.value?.next;
    if (next) this.select(next.n);
  }

  /** The next mark of a kind on the strip, or of any. */
  stepMark(by: -1 | 1, kind?: number): void {
    if (kind === FAILED && this.columns.value > ALL_MARKS) void this.stepFailed(by);
    else this.go(nextMark(this.marks.value, this.detail.value, by, kind));
  }

  private go(mark: Mark | null): void {
    if (mark) this.select(mark.n);
  }

  /** In a long history the strip has one mark a stretch: those nearby are asked for. */
  private async stepFailed(by: -1 | 1): Promise<void> {
    const at = this.detail.peek();
    const coarse = nextMark(this.marks.peek(), at, by, FAILED);
    const ask = async (from: number): Promise<Mark | null> => {
      const part = await get<Overview>(`${this.path}/overview`, {
        fold: this.foldQuery,
        from: Math.max(0, from),
        to: Math.max(0, from) + ALL_MARKS,
        bins: 1,
      }).catch(() => null);
      return nextMark(marksOf(part?.marks ?? [], []), at, by, FAILED);
    };
    const col = at?.col ?? 0;
    const near = await ask(by > 0 ? col : col - ALL_MARKS + 1);
    if (this.detail.peek() === at)
      this.go(near ?? (coarse && by < 0 ? await ask(coarse.col) : coarse));
  }

  stepKind(kind: number): void {
    const next = roundMark(this.marks.value, this.detail.value, kind);
    if (next) this.select(next.n);
  }
}

export function clampView(from: number, to: number, columns: number): {from: number; to: number} {
  const span = to - from;
  if (span >= columns + 2) {
    const middle = columns / 2;
    return {from: middle - span / 2, to: middle + span / 2};
  }
  const first = Math.max(-1.5, Math.min(from, columns + 0.5 - span));
  return {from: first, to: first + span};
}
