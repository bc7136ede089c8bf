// recorded.ts - the loaded part of the inbox: pages of the list, counts of facets, and live
// updates.

import {signal} from '@preact/signals';
import {get} from '../../base/api';
import {may, session} from '../../base/session';
import {follow, type Stream} from '../../base/stream';
import {isAfter, keyOf, renewed, type Facets, type Item, type Page} from './items';

const PAGE = 200;
/** Several traces of one batch are one look. */
const GATHER_MS = 300;

export type Chosen = Readonly<Record<string, string>>;

export class Recorded {
  readonly items = signal<readonly Item[] | null>(null);
  readonly facets = signal<Facets | null>(null);
  readonly error = signal<Error | null>(null);
  readonly fresh = signal<ReadonlySet<string>>(new Set());
  readonly isUp = signal(false);
  readonly hasMore = signal(false);
  private chosen: Chosen = {};
  private loadedKey = '';
  private cursor: string | null = null;
  private abort = new AbortController();
  private readonly stream: Stream | null;
  private timer = 0;
  private isMore = false;
  /** The newest event; what is shown may be of before it. */
  private wanted = '';

  constructor() {
    this.stream =
      session.value?.traces && may('trace:read')
        ? follow(
            '/api/v1/feed?hints=true',
            ['trace', 'conflict', 'alert', 'run', 'step', 'session'],
            (_name, _data, id) => this.heard(id),
            (up) => (this.isUp.value = up),
          )
        : null;
  }

  close(): void {
    this.abort.abort();
    this.stream?.close();
    clearTimeout(this.timer);
  }

  /** Shows what was chosen; the same again changes nothing. */
  show(chosen: Chosen): void {
    const key = JSON.stringify(Object.entries(chosen).sort());
    if (key === this.loadedKey) return;
    this.loadedKey = key;
    this.chosen = chosen;
    this.abort.abort();
    this.abort = new AbortController();
    this.isMore = false;
    void this.load(true);
  }

  private heard(id: string): void {
    if (id && (!this.wanted || isAfter(id, this.wanted))) this.wanted = id;
    this.soon(GATHER_MS);
  }

  private soon(ms: number): void {
    if (this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.load(false);
    }, ms);
  }

  /** The first page and the counts; `anew`: of something else than is shown. */
  private async load(anew: boolean): Promise<void> {
    const abort = this.abort.signal;
    try {
      const [page, facets] = await Promise.all([
        get<Page>('/api/v1/inbox', {...this.chosen, limit: PAGE}, abort),
        get<Facets>('/api/v1/inbox/facets', {...this.chosen}, abort),
      ]);
      if (abort.aborted) return;
      this.showPage(page, anew);
      this.facets.value = facets;
      this.error.value = null;
      // The index lags the ledger: an announced record may appear a moment later.
      if (this.wanted && page.index && isAfter(this.wanted, page.index)) this.soon(2 * GATHER_MS);
    } catch (error) {
      if (!abort.aborted) this.error.value = error as Error;
    }
  }

  private showPage(page: Page, anew: boolean): void {
    const before = this.items.value;
    if (anew || !before) {
      this.items.value = page.items;
      this.cursor = page.next_cursor;
    } else {
      const {items, fresh, isWhole} = renewed(before, page.items, page.next_cursor === null);
      this.items.value = items;
      if (!isWhole || page.next_cursor === null) this.cursor = page.next_cursor;
      if (fresh.length > 0) this.fresh.value = new Set([...this.fresh.value, ...fresh]);
    }
    this.hasMore.value = this.cursor !== null;
  }

  /** The end of what is there comes near. */
  async more(): Promise<void> {
    const abort = this.abort.signal;
    if (this.isMore || this.cursor === null) return;
    this.isMore = true;
    try {
      const page = await get<Page>(
        '/api/v1/inbox',
        {...this.chosen, limit: PAGE, cursor: this.cursor},
        abort,
      );
      if (abort.aborted) return;
      const known = new Set(this.items.value?.map(keyOf));
      this.items.value = [
        ...(this.items.value ?? []),
        ...page.items.filter((item) => !known.has(keyOf(item))),
      ];
      this.cursor = page.next_cursor;
      this.hasMore.value = this.cursor !== null;
    } catch (error) {
      if (!abort.aborted) this.error.value = error as Error;
    } finally {
      if (!abort.aborted) this.isMore = false;
    }
  }
}
