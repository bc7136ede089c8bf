// carried.ts - the data embedded in a file, where there is no server: the answers of /api/v1/view,
// computed from the nodes in the file (docs/formats/view.md).

import type {
  NodeDetail,
  NodeRef,
  Overview,
  Summary,
  Window,
  Write,
} from '../screens/debugger/types';
import type {Sent} from '../ui/value';
import {ApiError, type Answers, type Query} from './api';
import {emitJson, readJson, type Json} from './json';

type Sections = Record<string, Sent | null>;

export interface CarriedData {
  format: 'cortex-page-1';
  title: string;
  first: number;
  /** States after lineage parents that are not here, by "#N". */
  bases: Record<string, Sections>;
  nodes: NodeDetail[];
  summary: Summary;
  window: Window;
}

/** What `cortex lattice render --html` put into the page; null for a page from a server. */
export function carriedData(): CarriedData | null {
  const text = document.getElementById('cortex-data')?.textContent;
  return text ? (JSON.parse(text) as CarriedData | null) : null;
}

/** The members of a map section, by key; lists as they are. */
interface State {
  maps: {memory: Map<string, Sent>; beliefs: Map<string, Sent>};
  lists: {goals: Sent; context_stack: Sent};
}

const EMPTY_LIST: Sent = {cut: false, size: 2, text: '[]'};

const sent = (json: Json): Sent => {
  const text = emitJson(json);
  return {cut: json.kind === 'cut', size: text.length, text};
};

function mapOf(section: Sent | null | undefined): Map<string, Sent> {
  const json = section ? readJson(section.text) : null;
  return new Map(
    json?.kind === 'object' ? json.members.map(([key, value]) => [key, sent(value)]) : [],
  );
}

function absent(detail: string): never {
  throw new ApiError({type: 'about:blank', title: 'Not in this file', status: 404, detail});
}

export class Carried implements Answers {
  readonly live = false;
  private readonly byNumber = new Map<number, NodeDetail>();
  private readonly places = new Map<number, number>();
  private readonly states = new Map<number, State>();

  constructor(private readonly data: CarriedData) {
    data.nodes.forEach((node, place) => {
      this.byNumber.set(node.n, node);
      this.places.set(node.n, place);
    });
  }

  async get(path: string, query: Query): Promise<unknown> {
    if (path === '/api/v1/session')
      return {
        file: this.data.title,
        folder: null,
        level: 'full_traces',
        name: 'file',
        fleet: false,
        otlp_url: null,
        repo: false,
        scopes: [],
        token_file: null,
        traces: false,
        version: '',
      };
    const what = /^\/api\/v1\/view\/file\/([a-z]+)$/.exec(path)?.[1];
    const range = {
      from: Number(query['from'] ?? 0),
      to: Number(query['to'] ?? 0) || this.data.summary.columns,
    };
    switch (what) {
      case 'summary':
        return this.data.summary;
      case 'overview':
        return this.overview(range.from, range.to, Number(query['bins'] ?? 400));
      case 'window':
        return this.window(range.from, range.to);
      case 'node':
        return this.find(String(query['node']));
      case 'values':
        return this.values(this.find(String(query['node'])), String(query['pointer'] ?? ''));
      case 'writes':
        return this.writes(
          this.find(String(query['node'])),
          String(query['section']),
          String(query['key']),
        );
      default:
        return absent('This file contains one history only.');
    }
  }

  /** How much of the history is here, for people; null when all of it is. */
  get notice(): string | null {
    const {nodes, summary, first} = this.data;
    return nodes.length < summary.nodes
      ? `This file contains ${nodes.length} of ${summary.nodes} events, starting with event ${first + 1}.`
      : null;
  }

  private find(name: string): NodeDetail {
    const {nodes} = this.data;
    const found =
      nodes.find((node) => node.id === name || node.hash === name) ??
      (/^#\d+$/.test(name) ? this.byNumber.get(Number(name.slice(1))) : undefined) ??
      (name.startsWith('@')
        ? nodes.filter((node) => node.agent === name.slice(1)).sort((a, b) => b.seq - a.seq)[0]
        : undefined);
    return found ?? absent(this.notice ?? 'No such event in this history.');
  }

  /* --- the picture ------------------------------------------------------------------------------ */

  private window(from: number, to: number): Window {
    const {edges, nodes} = this.data.window;
    const columnIndexes: number[] = [];
    nodes.col.forEach((col, i) => {
      if (col >= from && col < to) columnIndexes.push(i);
    });
    const pick = <T>(list: readonly T[]): T[] => columnIndexes.map((i) => list[i]!);
    const near: number[] = [];
    for (let i = 0; i < edges.length; i += 8)
      if (edges[i + 4]! >= from && edges[i + 1]! < to) near.push(...edges.slice(i, i + 8));
    return {
      cut: false,
      edges: near,
      from,
      to,
      nodes: {
        code: pick(nodes.code),
        col: pick(nodes.col),
        fold: pick(nodes.fold),
        fork: pick(nodes.fork),
        lane: pick(nodes.lane),
        marks: pick(nodes.marks),
        n: pick(nodes.n),
        t: pick(nodes.t),
        ...(nodes.span
          ? {span: columnIndexes.flatMap((i) => nodes.span!.slice(2 * i, 2 * i + 2))}
          : {}),
        ...(nodes.label ? {label: pick(nodes.label)} : {}),
      },
    };
  }

  private overview(from: number, to: number, wanted: number): Overview {
    const {nodes} = this.data.window;
    const bins = Math.max(1, Math.min(wanted, to - from));
    const counts = new Map<number, [number, number]>();
    const marks: number[] = [];
    nodes.col.forEach((col, i) => {
      if (col < from || col >= to) return;
      const at = nodes.lane[i]! * bins + Math.floor(((col - from) * bins) / (to - from));
      const cell = counts.get(at) ?? [0, 0];
      counts.set(at, [
        cell[0] + 1,
        cell[1] | nodes.marks[i]! | (nodes.fork[i] ? 1 << (7 + nodes.fork[i]!) : 0),
      ]);
      const put = (kind: number): number => marks.push(kind, col, nodes.n[i]!);
      if (nodes.marks[i]! & 8) put(0);
      if (nodes.marks[i]! & 16) put(1);
      if (nodes.fork[i]! > 0 && nodes.fork[i]! < 4) put(1 + nodes.fork[i]!);
      if (nodes.marks[i]! & 1) put(5);
      if (nodes.marks[i]! & 128) put(6);
      if (this.byNumber.get(nodes.n[i]!)?.snapshots.length) put(7);
      if (nodes.marks[i]! & 2048) put(8);
    });
    return {
      bins,
      from,
      to,
      marks,
      cells: [...counts].flatMap(([at, [count, of]]) => [
        Math.floor(at / bins),
        at % bins,
        count,
        of,
      ]),
    };
  }

  /* --- states ----------------------------------------------------------------------------------- */

  private base(lineage: number | null): State {
    const base = lineage === null ? undefined : this.data.bases['#' + lineage];
    return {
      maps: {memory: mapOf(base?.['memory']), beliefs: mapOf(base?.['beliefs'])},
      lists: {
        goals: base?.['goals'] ?? EMPTY_LIST,
        context_stack: base?.['context_stack'] ?? EMPTY_LIST,
      },
    };
  }

  /** After a node: what was after its lineage parent, and what the node changed. */
  private stateAfter(n: number | null): State {
    const path: NodeDetail[] = [];
    let at = n;
    let state: State | undefined;
    while (at !== null) {
      state = this.states.get(at);
      if (state) break;
      const node = this.byNumber.get(at);
      if (!node) break;
      path.push(node);
      at = node.lineage;
    }
    state ??= this.base(at);
    for (const node of path.reverse()) {
      state = {
        maps: {memory: new Map(state.maps.memory), beliefs: new Map(state.maps.beliefs)},
        lists: {...state.lists},
      };
      for (const change of node.changes) {
        if (change.section === 'goals' || change.section === 'context_stack')
          state.lists[change.section] = change.new ?? EMPTY_LIST;
        else if (change.key !== null && change.new)
          state.maps[change.section].set(change.key, change.new);
        else if (change.key !== null) state.maps[change.section].delete(change.key);
      }
    }
    if (n !== null) this.states.set(n, state);
    return state;
  }

  private values(node: NodeDetail, pointer: string): unknown {
    const now = this.stateAfter(node.n);
    const before = node.lineage === null ? this.base(null) : this.stateAfter(node.lineage);
    const path = pointer
      .split('/')
      .slice(1)
      .map((part) => part.replace(/~1/g, '/').replace(/~0/g, '~'));
    if (path.length === 0) {
      const map = (name: 'memory' | 'beliefs'): unknown => ({
        changed: node.changes.some((change) => change.section === name),
        key: name,
        kind: 'object',
        count: now.maps[name].size,
        many: false,
      });
      const list = (name: 'goals' | 'context_stack'): unknown => ({
        changed: node.changes.some((change) => change.section === name),
        key: name,
        kind: 'array',
        value: now.lists[name],
      });
      return level(pointer, [map('memory'), map('beliefs'), list('goals'), list('context_stack')]);
    }
    const [section, key, ...inner] = path;
    if (section === 'goals' || section === 'context_stack')
      return leaf(pointer, now.lists[section]);
    if (section !== 'memory' && section !== 'beliefs')
      return absent('The state has no value at this path.');
    if (key === undefined)
      return level(
        pointer,
        [...now.maps[section]]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, value]) => entry(name, value, before.maps[section].get(name))),
      );
    const find = (state: State): Json | undefined => {
      const value = state.maps[section].get(key);
      let json: Json | undefined = value ? readJson(value.text) : undefined;
      for (const part of inner)
        json =
          json?.kind === 'object' ? json.members.find(([name]) => name === part)?.[1] : undefined;
      return json;
    };
    const here = find(now) ?? absent('The state has no value at this path.');
    const was = find(before);
    if (here.kind !== 'object') return leaf(pointer, sent(here));
    const old = new Map(
      was?.kind === 'object' ? was.members.map(([name, value]) => [name, sent(value)]) : [],
    );
    return level(
      pointer,
      here.members.map(([name, value]) => entry(name, sent(value), old.get(name))),
    );
  }

  /* --- where a key got its value ---------------------------------------------------------------- */

  private writes(node: NodeDetail, section: string, key: string): unknown {
    const change = (of: NodeDetail): Write | null => {
      const found = of.changes.find((one) => one.section === section && one.key === key);
      return found ? {...ref(of), new: found.new, old: found.old, via: found.via} : null;
    };
    const before = new Set<number>([node.n]);
    const waiting = [node];
    for (let at = waiting.pop(); at; at = waiting.pop())
      for (const parent of at.parents)
        if (!before.has(parent.n)) {
          before.add(parent.n);
          const more = this.byNumber.get(parent.n);
          if (more) waiting.push(more);
        }
    const order = [...before]
      .filter((n) => this.places.has(n))
      .sort((a, b) => this.places.get(b)! - this.places.get(a)!);
    const after = new Set<number>([node.n]);
    let next: NodeRef | null = null;
    for (let i = this.places.get(node.n)! + 1; i < this.data.nodes.length && !next; i++) {
      const at = this.data.nodes[i]!;
      if (!at.parents.some((parent) => after.has(parent.n))) continue;
      after.add(at.n);
      if (change(at)) next = ref(at);
    }
    return {
      changes: order.map((n) => change(this.byNumber.get(n)!)).filter((one) => one !== null),
      key,
      more: 0,
      next,
      node: node.id,
      section,
    };
  }
}

function ref({agent, col, id, lane, n, seq, t}: NodeRef): NodeRef {
  return {agent, col, id, lane, n, seq, t};
}

function level(pointer: string, entries: unknown[]): unknown {
  return {entries, kind: 'object', more: false, pointer};
}

function leaf(pointer: string, value: Sent): unknown {
  return {entries: [], kind: 'array', more: false, pointer, value};
}

function entry(key: string, value: Sent, old: Sent | undefined): unknown {
  const changed = old?.text !== value.text || old.size !== value.size;
  const json = readJson(value.text);
  if (json.kind === 'object' && !value.cut)
    return {changed, key, kind: 'object', count: json.members.length, many: false};
  const word = json.kind === 'word' ? (json.text === 'null' ? 'null' : 'boolean') : json.kind;
  return {changed, key, kind: word, value};
}
