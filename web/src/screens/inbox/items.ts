// items.ts - the server's answers about the inbox (docs/formats/view.md), and labels of its items
// and facet values. Pure.

import type {InboxItem as Item} from '../../base/api-types';
import {shortAgent} from '../../base/format';
import {linkTo} from '../../base/router';
import {MECHANISMS} from '../fleet/model';
import {folderName} from '../live/model';

export type {InboxFacets as Facets, InboxPage as Page} from '../../base/api-types';
export type {Item};

/** In display order. */
export const FACETS: readonly {id: string; title: string}[] = [
  {id: 'kind', title: 'Kind'},
  {id: 'source', title: 'Source'},
  {id: 'verdict', title: 'Verdict'},
  {id: 'gate', title: 'Conscience or gate'},
  {id: 'k_eff', title: 'k_eff'},
  {id: 'level', title: 'Level'},
  {id: 'time', title: 'Time'},
  {id: 'agent', title: 'Agent'},
];

const WORDS: Record<string, string> = {
  trace: 'traces',
  run: 'runs',
  history: 'histories',
  alert: 'alerts',
  unverified: 'not verified',
  not_passed: 'not passed',
  below_2: 'below 2',
  '2_to_5': '2 to 5',
  '5_and_more': '5 and more',
  full_traces: 'full traces',
  '1h': 'Last hour',
  '24h': 'Last day',
  '7d': 'Last week',
};

/** A facet's value for people; agents are shortened, days are unchanged. */
export function facetLabel(facet: string, value: string): string {
  if (facet === 'agent') return shortAgent(value);
  if (facet === 'source') return SOURCES[value] ?? value;
  return Object.hasOwn(WORDS, value) ? WORDS[value]! : value;
}

export function keyOf(item: Item): string {
  return `${item.kind} ${item.agent ?? ''} ${item.id}`;
}

/** Seconds; null when the time is unknown. */
export function seconds(text: string | null): number | null {
  const value = text ? Date.parse(text.replace(/(\.\d{3})\d+/, '$1')) : NaN;
  return Number.isFinite(value) ? value / 1000 : null;
}

export function hrefOf(item: Item): string {
  switch (item.kind) {
    case 'trace':
      return linkTo('trace', item.id, item.agent ? {agent: item.agent} : {});
    case 'run':
      return linkTo('run', item.id);
    case 'history':
      return 'cwd' in item.value ? linkTo('live', item.value.actor) : linkTo('debugger', item.id);
    case 'alert':
      return linkTo('fleet', '', {
        ...(item.agent ? {agent: item.agent} : {}),
        ...(item.value.resolved ? {alerts: 'all'} : {}),
      });
  }
}

/** Where a history came from, for people. */
export const SOURCES: Readonly<Record<string, string>> = {
  'claude-code': 'Claude Code session',
  codex: 'Codex session',
  otel: 'OpenTelemetry trace',
  steps: 'recorded steps',
  live: 'Live session',
};

const joined = (parts: readonly (string | null | undefined)[]): string =>
  parts.filter(Boolean).join(' \u00b7 ');

/** The line of an item, and the one below it. */
export function textsOf(item: Item): [string, string] {
  switch (item.kind) {
    case 'trace':
      return [
        item.value.selected_action ?? item.value.trace_type ?? 'trace',
        joined([item.value.trace_type, item.value.task_id, item.id]),
      ];
    case 'run':
      return [item.value.task_id ?? item.id, item.id];
    case 'history':
      if ('cwd' in item.value)
        return [
          folderName(item.value.cwd),
          joined([SOURCES['live'], item.value.agent, item.value.session]),
        ];
      if (!('steps' in item.value))
        return [
          shortAgent(item.id),
          item.agent ? 'history of an agent\u2019s signed traces' : 'history',
        ];
      return [
        item.value.title ?? shortAgent(item.id),
        joined([
          SOURCES[item.value.source] ?? item.value.source,
          item.value.model,
          item.value.path?.slice(item.value.path.lastIndexOf('/') + 1),
        ]),
      ];
    case 'alert': {
      const name = item.value.detection_mechanism;
      return [
        Object.hasOwn(MECHANISMS, name) ? MECHANISMS[name]! : name,
        joined([item.value.severity, item.value.metric, item.value.domain]),
      ];
    }
  }
}

/** Whether a position is after another: "17.2" is after "17.1". */
export function isAfter(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  return left![0]! !== right![0]! ? left![0]! > right![0]! : (left![1] ?? 0) > (right![1] ?? 0);
}

/** What is there now and what came with a newer first page: in order, each once.  `isWhole` is false when more came than
 *  the page holds, so that there is a hole between the two; then only the page is left. */
export function renewed(
  before: readonly Item[],
  page: readonly Item[],
  isLast: boolean,
): {items: Item[]; fresh: string[]; isWhole: boolean} {
  const known = new Set(before.map(keyOf));
  const now = new Set(page.map(keyOf));
  const fresh = page.map(keyOf).filter((key) => !known.has(key));
  const isWhole = isLast || before.length === 0 || fresh.length < page.length;
  return {
    items:
      isWhole && !isLast ? [...page, ...before.filter((item) => !now.has(keyOf(item)))] : [...page],
    fresh,
    isWhole,
  };
}
