// tabs.tsx - one of several panes, chosen with arrow keys or a click.

import type {ComponentChildren} from 'preact';

export interface Tab {
  id: string;
  title: ComponentChildren;
}

interface Props {
  label: string;
  tabs: readonly Tab[];
  active: string;
  onActive(id: string): void;
  children: ComponentChildren;
}

export function Tabs({label, tabs, active, onActive, children}: Props) {
  const step = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = tabs.findIndex((tab) => tab.id === active);
    const next = tabs[(at + by + tabs.length) % tabs.length]!;
    onActive(next.id);
    (event.currentTarget as HTMLElement)
      .querySelector<HTMLElement>(`[data-tab="${next.id}"]`)
      ?.focus();
  };
  return (
    <div class="tabs">
      <div class="tab-bar" role="tablist" aria-label={label} onKeyDown={step}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            data-tab={tab.id}
            id={`tab-${tab.id}`}
            aria-selected={tab.id === active}
            aria-controls={`panel-${tab.id}`}
            tabIndex={tab.id === active ? 0 : -1}
            class="tab"
            onClick={() => onActive(tab.id)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div
        class="tab-panel"
        role="tabpanel"
        id={`panel-${active}`}
        aria-labelledby={`tab-${active}`}
      >
        {children}
      </div>
    </div>
  );
}
