// router.ts - the address is the state: every view can be shared as a link, and the back button
// works.
//
//   #/SCREEN/NAME?node=ID&key=memory.budget
//
// Everything is after '#', so the same addresses work in a file that is opened from a disk.

import {computed, signal} from '@preact/signals';

export interface Route {
  screen: string;
  /** What the screen is about: a lattice, a trace id, a run id. */
  name: string;
  query: Readonly<Record<string, string>>;
}

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, '');
  const mark = text.indexOf('?');
  const path = (mark < 0 ? text : text.slice(0, mark)).split('/').map(decode);
  const query: Record<string, string> = {};
  if (mark >= 0)
    for (const [name, value] of new URLSearchParams(text.slice(mark + 1))) query[name] = value;
  return {screen: path[0] || 'inbox', name: path.slice(1).join('/'), query};
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function hashOf(route: Route): string {
  const name = route.name ? '/' + route.name.split('/').map(encodeURIComponent).join('/') : '';
  const params = new URLSearchParams();
  for (const key of Object.keys(route.query).sort()) {
    const value = route.query[key];
    if (value) params.set(key, value);
  }
  const query = params.toString();
  return `#/${route.screen}${name}${query ? '?' + query : ''}`;
}

export const route = signal<Route>(
  parseRoute(typeof location === 'undefined' ? '' : location.hash),
);
export const screen = computed(() => route.value.screen);

export type Change = Record<string, string | null | undefined>;

function merged(query: Readonly<Record<string, string>>, change: Change): Record<string, string> {
  const next: Record<string, string> = {...query};
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === undefined || value === '') delete next[name];
    else next[name] = value;
  }
  return next;
}

/** A link to another screen. */
export function linkTo(toScreen: string, name = '', query: Record<string, string> = {}): string {
  return hashOf({screen: toScreen, name, query});
}

export function go(toScreen: string, name = '', query: Record<string, string> = {}): void {
  show({screen: toScreen, name, query}, true);
}

/** The same without a step for the back button: for an address that stands for another one. */
export function replaceWith(toScreen: string, name = ''): void {
  show({screen: toScreen, name, query: {}}, false);
}

/** Changes the query of the present screen: a step of its own for the back button, or none. */
export function adjust(change: Change, step = true): void {
  show({...route.value, query: merged(route.value.query, change)}, step);
}

function show(next: Route, step: boolean): void {
  const hash = hashOf(next);
  if (hash === hashOf(route.value)) return;
  history[step ? 'pushState' : 'replaceState'](null, '', hash);
  route.value = parseRoute(hash);
}

export function listen(): void {
  const follow = (): void => {
    // An address that signs in, opened in a page that is there already: the page begins anew and takes the token out.
    if (location.hash.startsWith('#token=')) return location.reload();
    route.value = parseRoute(location.hash);
  };
  follow();
  addEventListener('popstate', follow);
  addEventListener('hashchange', follow);
}
