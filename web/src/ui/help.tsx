// help.tsx - all keys and their actions, as a dialog.

import {useEffect, useRef} from 'preact/hooks';
import {allCommands, helpIsOpen} from '../base/keys';

const SPELLED: Record<string, string> = {
  ArrowLeft: '\u2190',
  ArrowRight: '\u2192',
  ArrowUp: '\u2191',
  ArrowDown: '\u2193',
  ' ': 'Space',
};

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = helpIsOpen.value;
  useEffect(() => {
    if (isOpen && dialog.current && !dialog.current.open) dialog.current.showModal();
    else if (!isOpen && dialog.current?.open) dialog.current.close();
  }, [isOpen]);
  const commands = allCommands();
  const groups = [...new Set(commands.map((command) => command.group))];
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={() => (helpIsOpen.value = false)}
    >
      <header>
        <h2 id="help-title">Keyboard shortcuts</h2>
        <button type="button" onClick={() => (helpIsOpen.value = false)}>
          Close
        </button>
      </header>
      <div class="help-groups">
        {groups.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {commands
                .filter((command) => command.group === group)
                .map((command) => (
                  <div key={command.keys}>
                    <dt>
                      {command.keys
                        .split(' ')
                        .filter(Boolean)
                        .map((key) => (
                          <kbd key={key}>
                            {SPELLED[key] ??
                              key.replace(
                                /Arrow(Left|Right|Up|Down)/,
                                (_, way: string) => SPELLED[`Arrow${way}`]!,
                              )}
                          </kbd>
                        ))}
                    </dt>
                    <dd>{command.what}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  );
}
