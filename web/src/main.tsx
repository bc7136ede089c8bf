// main.tsx - the page: sign in, then the bar, the screen of the address, help and toasts.

import {render} from 'preact';
import {useEffect} from 'preact/hooks';
import './style/index.css';
import {answerWith, ApiError, change, isLive, isSignedOut} from './base/api';
import {addCommands, connectIsOpen, handleKey, helpIsOpen} from './base/keys';
import {Carried, carriedData} from './base/carried';
import {go, linkTo, listen, replaceWith, route} from './base/router';
import {session, startSession, takeToken} from './base/session';
import {isDark, startTheme, toggleTheme} from './base/theme';
import {screens} from './screens/registry';
import {ConnectDialog} from './ui/connect';
import {Help} from './ui/help';
import {Icon} from './ui/icon';
import {SignIn} from './ui/sign_in';
import {Failed, Loading} from './ui/states';
import {say, Toasts} from './ui/toast';
import {signal} from '@preact/signals';

const failure = signal<Error | null>(null);

function Bar() {
  const at = route.value.screen;
  const who = session.value;
  return (
    <nav class="bar" aria-label="Screens">
      <span class="mark" aria-hidden="true">
        cortex
      </span>
      <ul>
        {screens
          .filter((screen) => screen.inBar && (who?.file == null || screen.id === 'debugger'))
          .filter((screen) => !screen.ofFleet || who?.fleet)
          .map((screen) => (
            <li key={screen.id}>
              <a
                href={
                  screen.id === 'debugger' && who?.file != null
                    ? linkTo('debugger', 'file')
                    : linkTo(screen.id)
                }
                aria-current={screen.id === at ? 'page' : undefined}
                title={screen.title}
              >
                <Icon name={screen.icon} />
                <span>{screen.title}</span>
              </a>
            </li>
          ))}
      </ul>
      <div class="bar-end">
        {who?.traces && (
          <button
            type="button"
            class="quiet"
            title="Connect an agent"
            aria-label="Connect an agent"
            onClick={() => (connectIsOpen.value = true)}
          >
            <Icon name="plus" />
          </button>
        )}
        <button
          type="button"
          class="quiet"
          title="Toggle light and dark theme (t)"
          aria-label="Toggle light and dark theme"
          onClick={toggleTheme}
        >
          <Icon name={isDark.value ? 'sun' : 'moon'} />
        </button>
        <button
          type="button"
          class="quiet"
          title="Help: tasks and keys (?)"
          aria-label="Help"
          onClick={() => (helpIsOpen.value = true)}
        >
          <Icon name="help" />
        </button>
      </div>
    </nav>
  );
}

function Page() {
  const screen = screens.find((one) => one.id === route.value.screen) ?? screens[0]!;
  const View = screen.view;
  // Where one file is served there is one place to be.
  const isLost = session.value?.file != null && !route.value.name;
  useEffect(() => {
    if (isLost) replaceWith('debugger', 'file');
  }, [isLost]);
  useEffect(() => {
    document.title = route.value.name ? `${screen.title} \u2013 Cortex` : `Cortex ${screen.title}`;
  }, [screen.id, route.value.name]);
  if (isSignedOut.value) return <SignIn />;
  if (failure.value)
    return (
      <main class="alone">
        <Failed error={failure.value} again={() => location.reload()} />
      </main>
    );
  if (!session.value)
    return (
      <main class="alone">
        <Loading what="Opening" />
      </main>
    );
  return (
    <div class="page">
      {/* biome-ignore lint/a11y/useValidAnchor: a link to a place on the page; addresses are after # */}
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to content
      </a>
      <Bar />
      <main id="main" tabIndex={-1} class={`screen screen-${screen.id}`}>
        <View />
      </main>
      <Help />
      <ConnectDialog />
      <Toasts />
    </div>
  );
}

async function start(): Promise<void> {
  startTheme();
  const data = carriedData();
  const token = data ? null : takeToken();
  listen();
  if (data) {
    const carried = new Carried(data);
    answerWith(carried);
    if (carried.notice) say(carried.notice);
  }
  addEventListener('keydown', handleKey);
  addCommands([
    {
      keys: '?',
      what: 'Show help',
      group: 'Global',
      run: () => (helpIsOpen.value = !helpIsOpen.value),
    },
    {keys: 't', what: 'Toggle light and dark theme', group: 'Global', run: toggleTheme},
    {
      keys: 'g',
      what: 'Go to the inbox',
      group: 'Global',
      run: () =>
        go(
          session.value?.file != null ? 'debugger' : 'inbox',
          session.value?.file != null ? 'file' : '',
        ),
    },
  ]);
  render(<Page />, document.getElementById('page')!);
  try {
    await startSession(token);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) failure.value = error as Error;
  }
}

export async function signOut(): Promise<void> {
  if (isLive()) await change('DELETE', '/api/v1/session');
  isSignedOut.value = true;
}

void start();
