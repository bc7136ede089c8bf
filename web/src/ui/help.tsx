// help.tsx - what can be done here, by task, and the keys below.

import {chooseEditor, EDITORS, editor} from '../base/editor';
import {allCommands, connectIsOpen, helpIsOpen} from '../base/keys';
import {linkTo} from '../base/router';
import {session} from '../base/session';
import {Dialog} from './dialog';

const SPELLED: Record<string, string> = {
  ArrowLeft: '\u2190',
  ArrowRight: '\u2192',
  ArrowUp: '\u2191',
  ArrowDown: '\u2193',
};

interface Task {
  title: string;
  words: string;
  /** Where it is done. */
  link?: string;
}

const TASKS: readonly Task[] = [
  {
    title: 'See what an agent did',
    words:
      'Open its row in the inbox. The debugger shows lanes of agents, or the conversation; e and n go to the next error.',
    link: linkTo('inbox'),
  },
  {
    title: 'Find where something was said',
    words:
      'Search in the inbox: words of prompts, messages, tool arguments and results. A hit opens at its step.',
    link: linkTo('inbox'),
  },
  {
    title: 'Find out why a value is what it is',
    words:
      'Select a step in the debugger, choose a key under State, and read Why: each change that led to it, with its source.',
    link: linkTo('debugger'),
  },
  {
    title: 'Compare two agents, runs or histories',
    words: 'Compare finds the step in which they part, and what each knew by then.',
    link: linkTo('compare'),
  },
  {
    title: 'Prove a record to someone else',
    words:
      'Evidence makes a file that a browser shows and cortex-verify checks, and checks files of others.',
    link: linkTo('evidence'),
  },
  {
    title: 'See why a governed run was refused',
    words: 'Runs shows the gate that refused, the change, and the tests.',
    link: linkTo('run'),
  },
];

function Tasks() {
  const isFile = session.value?.file != null;
  const close = (): void => {
    helpIsOpen.value = false;
  };
  return (
    <section class="help-tasks" aria-label="Tasks">
      <dl class="help-groups">
        {!isFile && (
          <div>
            <dt>
              <button
                type="button"
                class="link"
                onClick={() => {
                  close();
                  connectIsOpen.value = true;
                }}
              >
                Connect an agent
              </button>
            </dt>
            <dd>Lines to copy for Claude Code, OpenTelemetry, Python, TypeScript and curl.</dd>
          </div>
        )}
        {TASKS.map((task) => (
          <div key={task.title}>
            <dt>
              {task.link && !isFile ? (
                <a href={task.link} onClick={close}>
                  {task.title}
                </a>
              ) : (
                task.title
              )}
            </dt>
            <dd>{task.words}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Help() {
  const commands = allCommands();
  const groups = [...new Set(commands.map((command) => command.group))];
  return (
    <Dialog isOpen={helpIsOpen} title="What do you want to do?">
      <Tasks />
      <p>
        <label>
          Open files of steps in{' '}
          <select
            value={editor.value}
            onChange={(event) => chooseEditor((event.target as HTMLSelectElement).value)}
          >
            {Object.entries(EDITORS).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>{' '}
        <span class="dim">
          Only files below the folder of the session or the served repository, on this machine.
        </span>
      </p>
      <h2 class="help-keys">Keys</h2>
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
                          <kbd key={key}>{key.replace(/Arrow\w+/, (arrow) => SPELLED[arrow]!)}</kbd>
                        ))}
                    </dt>
                    <dd>{command.what}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
