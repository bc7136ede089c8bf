// pane_head.tsx - the title of what was asked in the pane at the right, and how to close it.

import type {ComponentChildren} from 'preact';
import {useMemo} from 'preact/hooks';
import {Icon} from '../../ui/icon';

interface Props {
  icon: 'fork' | 'key';
  /** What was asked; another question has come from elsewhere. */
  asked: unknown;
  close(): void;
  children: ComponentChildren;
}

export function PaneHead({icon, asked, close, children}: Props) {
  // The control that asked has the focus again when the answer is closed.
  const from = useMemo(() => document.activeElement as HTMLElement | null, [asked]);
  return (
    <div class="why-head">
      <Icon name={icon} />
      <h2 class="line">{children}</h2>
      <button
        type="button"
        class="quiet"
        aria-label="Close"
        onClick={() => {
          from?.focus();
          close();
        }}
      >
        <Icon name="cross" />
      </button>
    </div>
  );
}
