// focus.ts - the focus: which event (node), which agent, which value. Every pane follows it, and
// any pane can set it; it is part of the address, so a link has a focus.

import {computed} from '@preact/signals';
import type {StateSection as Section} from './api-types';
import {adjust, go, route} from './router';

export type {Section};

/** A value of a state: its section and its top-level key (null = the section itself). */
export interface Key {
  section: Section;
  key: string | null;
}

const SECTIONS: readonly string[] = ['memory', 'beliefs', 'goals', 'context_stack'];

export function parseKey(text: string | undefined): Key | null {
  if (!text) return null;
  const dot = text.indexOf('.');
  const section = dot < 0 ? text : text.slice(0, dot);
  if (!SECTIONS.includes(section)) return null;
  return {section: section as Section, key: dot < 0 ? null : text.slice(dot + 1)};
}

export function keyText(key: Key): string {
  return key.key === null ? key.section : `${key.section}.${key.key}`;
}

export const focus = {
  /** The lattice that is looked at: "all", "agent/..", "run/..", "file". */
  source: computed(() => route.value.name),
  /** Its node: an id, a hash, "#K", or "@AGENT" for that agent's newest. */
  node: computed<string | null>(() => route.value.query['node'] ?? null),
  agent: computed<string | null>(() => route.value.query['agent'] ?? null),
  key: computed<Key | null>(() => parseKey(route.value.query['key'])),
};

/** Moves to a node. Scrubbing makes no step for the back button; a choice does. */
export function focusNode(node: string, options: {scrub?: boolean; agent?: string} = {}): void {
  adjust({node, ...(options.agent !== undefined ? {agent: options.agent} : {})}, !options.scrub);
}

export function focusKey(key: Key | null): void {
  adjust({key: key ? keyText(key) : null});
}

export function openLattice(name: string, query: Record<string, string> = {}): void {
  go('debugger', name, query);
}
