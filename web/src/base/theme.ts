// theme.ts - light or dark: the system's choice, until the user chooses.

import {effect, signal} from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'cortex-theme';
const systemDark = signal(false);

function stored(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return text === 'light' || text === 'dark' ? text : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>('system');
export const isDark = signal(false);

export function startTheme(): void {
  theme.value = stored();
  const media = matchMedia('(prefers-color-scheme: dark)');
  systemDark.value = media.matches;
  media.addEventListener('change', () => (systemDark.value = media.matches));
  effect(() => {
    isDark.value = theme.value === 'dark' || (theme.value === 'system' && systemDark.value);
    document.documentElement.dataset['theme'] = isDark.value ? 'dark' : 'light';
  });
}

export function toggleTheme(): void {
  theme.value = isDark.value ? 'light' : 'dark';
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // A page opened from a disk may have no storage; the choice holds until it is closed.
  }
}

/** Colours as the style sheet has them, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function prefersStill(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
