// session.ts - the session: the token's rights, and what the server offers.

import {signal} from '@preact/signals';
import {get, isSignedOut, signIn} from './api';
import type {Session} from './api-types';

export const session = signal<Session | null>(null);

export function may(scope: string): boolean {
  return session.value?.scopes.includes(scope) ?? false;
}

/** The token of "#token=..", taken out of the address before anything else is done. */
export function takeToken(): string | null {
  const match = /^#token=([A-Za-z0-9_-]{1,200})(?:&to=(.*))?$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', match[2] ? '#' + decodeURIComponent(match[2]) : location.pathname);
  return match[1]!;
}

export async function startSession(token: string | null): Promise<void> {
  if (token) await signIn(token);
  session.value = await get<Session>('/api/v1/session');
  isSignedOut.value = false;
}
