// model.ts - one run: its requests, the loaded events, and live updates.

import type {RunEvents} from '../../base/api-types';
import {batch, computed, signal} from '@preact/signals';
import {get} from '../../base/api';
import {readJson, member, stringMember} from '../../base/json';
import {Loader} from '../../base/load';
import {follow, type Stream} from '../../base/stream';
import {
  seconds,
  type FileItem,
  type Gates,
  type RunShown,
  type Timeline,
  type Verified,
} from './types';

export interface RunEvent {
  index: number;
  type: string;
  level: string;
  at: number;
  attempt: string;
  /** The payload, in canonical JSON or as it came. */
  payload: string;
  raw: string;
}

const PAGE = 1000;
/** Events are read ahead this far; beyond, as the list is scrolled. */
const AHEAD = 20_000;
const REFRESH_MS = 300;

/** What the server names its events by (run.md 17); one that is missing here is found by the gap. */
const TYPES = (
  'RUN_CREATED SCHEMA_REGISTRY_CHECK CONTRACT_VALIDATED POLICY_PACK_SELECTED POLICY_GATE_RESULT ' +
  'STATE_TRANSITION WORKTREE_CREATED WORKTREE_REMOVED LOCK_ACQUIRED LOCK_FAILED LOCK_RECLAIMED LOCK_RELEASED ' +
  'INTEGRATED_GATE_RESULT MCP_CONCURRENCY_CHECK NETWORK_GATE_RESULT MCP_TOOL_GATE_RESULT MCP_SAMPLING_GATE_RESULT ' +
  'TOOL_GATE_RESULT SANDBOX_APPLIED SANDBOX_DEGRADED RUNNER_SELECTED RUNNER_STARTED RUNNER_FINISHED ' +
  'TOOL_INVOCATION OUTPUT_SCHEMA_ENFORCED TASK_RESULT_RECORDED DIFF_GATE_RESULT CANDIDATE_COMMITTED ' +
  'ROLLBACK_APPLIED REVIEWER_GATE_RESULT REVIEW_RESULT TEST_COMMAND_RESULT TEST_RESULT FIX_LOOP_TRIGGERED ' +
  'FIX_LOOP_EXHAUSTED HUMAN_APPROVAL_REQUIRED HUMAN_APPROVAL_COMPLETED HUMAN_APPROVAL_REJECTED ' +
  'HUMAN_APPROVAL_TIMEOUT MERGE_APPLIED MERGE_REFUSED LOG_RECOVERED RUN_FINISHED gate_failed ' +
  'policy_violation'
).split(' ');

/** A line of events.jsonl; numbers stay the digits they were written with. */
export function readEvent(index: number, raw: string): RunEvent {
  const json = readJson(raw);
  const attempt = member(json, 'attempt');
  const place = raw.indexOf('"payload":');
  return {
    index,
    raw,
    type: stringMember(json, 'event_type') ?? 'unreadable',
    level: stringMember(json, 'level') ?? '',
    at: seconds(stringMember(json, 'ts')),
    attempt: attempt?.kind === 'number' ? attempt.text : '',
    payload:
      place < 0 || json.kind !== 'object' ? raw : raw.slice(place + 10, raw.lastIndexOf('}')),
  };
}

export class RunModel {
  readonly show = new Loader<RunShown>();
  readonly gates = new Loader<Gates>();
  readonly timeline = new Loader<Timeline>();
  readonly verdict = new Loader<Verified>();
  readonly files = new Loader<{items: FileItem[]}>();
  readonly events = signal<readonly RunEvent[]>([]);
  readonly eventsError = signal<Error | null>(null);
  readonly hasMore = signal(true);
  readonly isUp = signal(false);
  /** Rises when the run ends: what was asked of an unfinished bundle is asked again. */
  readonly ending = signal(0);
  readonly isRunning = computed(() => this.show.signal.value.value?.status === 'RUNNING');
  private stream: Stream | null = null;
  private timer = 0;
  private reading: Promise<void> | null = null;
  private isClosed = false;
  private readonly abort = new AbortController();

  constructor(readonly id: string) {
    this.load();
    this.verify();
    void this.readOn().then(() => this.followNew());
  }

  path(rest = ''): string {
    return `/api/v1/runs/${encodeURIComponent(this.id)}${rest}`;
  }

  load(): void {
    this.show.again(this.path());
    this.gates.again(this.path('/gates'));
    this.timeline.again(this.path('/timeline'));
    this.files.again(this.path('/artifacts'));
  }

  verify(): void {
    this.verdict.again(this.path('/verify'), {}, false);
  }

  /** The next pages, until there are enough. */
  readOn(most = AHEAD): Promise<void> {
    this.reading ??= this.readPages(most).finally(() => (this.reading = null));
    return this.reading;
  }

  private async readPages(most: number): Promise<void> {
    const limit = this.events.value.length + most;
    try {
      for (;;) {
        const from = this.last + 1;
        const page = await get<RunEvents>(
          this.path('/events'),
          {from, limit: PAGE, raw: true},
          this.abort.signal,
        );
        if (this.isClosed) return;
        const more = page.items
          .filter((item) => item.index > this.last)
          .map((item) => readEvent(item.index, item.raw ?? ''));
        batch(() => {
          if (more.length > 0) this.events.value = [...this.events.value, ...more];
          this.hasMore.value = page.next !== null;
          this.eventsError.value = null;
        });
        if (page.next === null || more.length === 0 || this.events.value.length >= limit) return;
      }
    } catch (error) {
      if (!this.isClosed) this.eventsError.value = error as Error;
    }
  }

  private get last(): number {
    return this.events.value.at(-1)?.index ?? 0;
  }

  private get isOver(): boolean {
    return this.events.value.at(-1)?.type === 'RUN_FINISHED';
  }

  private followNew(): void {
    if (this.isClosed || this.isOver || this.eventsError.value || this.hasMore.value) return;
    this.stream = follow(
      this.path(`/events/stream?after=${this.last}`),
      TYPES,
      (_name, _data, id, text) => {
        const index = Number(id);
        if (index === this.last + 1)
          this.events.value = [...this.events.value, readEvent(index, text)];
        else if (index > this.last) void this.readOn().then(() => this.noteEnd());
        this.noteEnd();
        this.refreshSoon();
      },
      (up) => (this.isUp.value = up),
    );
  }

  private noteEnd(): void {
    if (!this.isOver) return;
    this.stream?.close();
    this.stream = null;
    this.isUp.value = false;
    this.refreshSoon();
  }

  /** At most one round of questions in a while, however many events come. */
  private refreshSoon(): void {
    if (this.timer !== 0 || this.isClosed) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.load();
      if (this.isOver) this.seeSealed(20);
    }, REFRESH_MS);
  }

  /** The seal comes shortly after the last event. */
  private seeSealed(tries: number): void {
    get<RunShown>(this.path(), {}, this.abort.signal).then(
      (shown) => {
        if (this.isClosed) return;
        if (shown.status === 'RUNNING' || (shown.sealed !== true && tries > 0)) {
          this.timer = window.setTimeout(() => {
            this.timer = 0;
            this.seeSealed(tries - 1);
          }, REFRESH_MS);
          if (tries % 5 !== 0) return;
        }
        this.load();
        this.verify();
        this.ending.value++;
      },
      () => {},
    );
  }

  close(): void {
    this.isClosed = true;
    this.abort.abort();
    clearTimeout(this.timer);
    this.stream?.close();
    for (const loader of [this.show, this.gates, this.timeline, this.verdict, this.files])
      loader.stop();
  }
}
