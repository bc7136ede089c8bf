// badge.tsx - a verdict or a kind in one word: colour, shape and word agree.

import type {ComponentChildren} from 'preact';
import {Icon, type IconName} from './icon';

export type Tone = 'good' | 'bad' | 'warn' | 'info' | 'plain';

const ICONS: Record<Tone, IconName | null> = {
  good: 'check',
  bad: 'cross',
  warn: 'warn',
  info: 'dot',
  plain: null,
};

export function Badge({
  tone = 'plain',
  icon,
  title,
  children,
}: {
  tone?: Tone;
  icon?: IconName | null;
  title?: string;
  children: ComponentChildren;
}) {
  const shape = icon === undefined ? ICONS[tone] : icon;
  return (
    <span class={`badge badge-${tone}`} title={title}>
      {shape && <Icon name={shape} />}
      {children}
    </span>
  );
}
