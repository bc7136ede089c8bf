// states.tsx - the empty, loading and failed states of a pane.

import type {ComponentChildren} from 'preact';
import {ApiError} from '../base/api';
import type {Loaded} from '../base/load';
import {Icon} from './icon';
import {Text} from './text';

export function Empty({title, children}: {title: string; children?: ComponentChildren}) {
  return (
    <div class="state-empty">
      <p class="state-title">{title}</p>
      {children && <div class="state-more">{children}</div>}
    </div>
  );
}

/** Shown only when it takes long enough to be noticed (by CSS). */
export function Loading({what = 'Loading'}: {what?: string}) {
  return (
    <div class="state-loading" role="status">
      {what + '\u2026'}
    </div>
  );
}

export function Failed({error, again}: {error: Error; again?: () => void}) {
  const problem = error instanceof ApiError ? error.problem : null;
  return (
    <div class="state-failed" role="alert">
      <p class="state-title">
        <Icon name="warn" /> {problem?.title ?? 'Something went wrong'}
      </p>
      <p>
        <Text text={problem?.detail || error.message} most={600} />
      </p>
      {problem?.errors?.map(
        (one, i) =>
          one.reason &&
          one.reason !== problem.detail && (
            <p key={i}>
              <code>{one.parameter ?? one.pointer}</code> <Text text={one.reason} />
            </p>
          ),
      )}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The three states, then the content. */
export function Answer<T>({
  of,
  what,
  children,
}: {
  of: Loaded<T>;
  what?: string;
  children: (value: T) => ComponentChildren;
}) {
  if (of.error) return <Failed error={of.error} />;
  if (of.value === null) return of.isLoading ? <Loading what={what} /> : null;
  return <>{children(of.value)}</>;
}
