// waiting.tsx - calls that wait for a person, each with what it would do and the buttons that
// answer it.

import {useEffect, useRef, useState} from 'preact/hooks';
import type {LiveAnswered, LiveWaiting} from '../../base/api-types';
import {change} from '../../base/api';
import {ago, plural} from '../../base/format';
import {may} from '../../base/session';
import {Badge} from '../../ui/badge';
import {Text} from '../../ui/text';
import {say} from '../../ui/toast';
import {seconds} from '../run/types';

/** After a call has gone, what is under the pointer is another one: a click is not for it. */
const SETTLE_MS = 400;

type Answer = 'once' | 'session' | 'deny';

interface Props {
  /** Of the session, in the API. */
  path: string;
  items: readonly LiveWaiting[];
  again(): void;
}

export function Waiting({path, items, again}: Props) {
  const goneAt = useRef(0);
  const shown = useRef<readonly LiveWaiting[]>([]);
  const names = new Set(items.map((one) => one.input_sha256));
  if (shown.current.some((one) => !names.has(one.input_sha256))) goneAt.current = Date.now();
  shown.current = items;
  if (items.length === 0) return null;
  const isSettled = (): boolean => {
    if (Date.now() - goneAt.current >= SETTLE_MS) return true;
    say('The list has just changed: look again', 'bad');
    return false;
  };
  return (
    <section class="live-waiting" aria-labelledby="live-waiting">
      <h2 id="live-waiting">{plural(items.length, 'call waits', 'calls wait')} for a person</h2>
      {!may('session:approve') && (
        <p class="dim">
          This token may only look. To answer here, sign in with one that has the scope{' '}
          <code>session:approve</code>; or use <code>cortex session approve</code> on a terminal.
        </p>
      )}
      <ul>
        {items.map((one) => (
          <WaitingCall
            key={one.input_sha256}
            path={path}
            one={one}
            isSettled={isSettled}
            again={again}
          />
        ))}
      </ul>
    </section>
  );
}

const SAID: Record<Answer, string> = {
  once: 'Approved once',
  session: 'Approved for this session',
  deny: 'Denied',
};

interface CallProps {
  path: string;
  one: LiveWaiting;
  isSettled(): boolean;
  again(): void;
}

function WaitingCall({path, one, isSettled, again}: CallProps) {
  const [asked, setAsked] = useState<Answer | null>(null);
  const [isSending, setSending] = useState(false);
  const sure = useRef<HTMLButtonElement>(null);
  useEffect(() => sure.current?.focus(), [asked]);
  const send = (answer: Answer): void => {
    if (!isSettled()) return;
    setSending(true);
    change<LiveAnswered>('POST', `${path}/${answer === 'deny' ? 'deny' : 'approve'}`, {
      input_sha256: one.input_sha256,
      whole_session: answer === 'session',
    })
      .then(
        () => say(`${SAID[answer]}: the agent's next try gets the answer`),
        (error: Error) => say(error.message, 'bad'),
      )
      .finally(() => {
        setSending(false);
        setAsked(null);
        again();
      });
  };
  // What a rule forbids, and what holds for the whole session, is asked about once more.
  const begin = (answer: Answer): void =>
    one.dangerous || answer === 'session' ? setAsked(answer) : send(answer);
  const title = `live-call-${one.seq}`;
  return (
    <li class="live-waits" tabIndex={-1} aria-labelledby={title}>
      <p class="live-waits-head" id={title}>
        <Badge tone={one.dangerous ? 'bad' : 'warn'} icon={one.dangerous ? 'warn' : 'clock'}>
          {one.dangerous ? 'forbidden' : 'unlisted'}
        </Badge>{' '}
        <strong>
          <Text text={one.tool} most={100} />
        </strong>{' '}
        <span class="dim">
          <Text text={one.rule} most={10} /> {ago(seconds(one.time))}
        </span>
      </p>
      <p class="mono live-text">
        <Text text={one.text} most={600} />
      </p>
      <p>
        <Text text={one.why} most={600} />
      </p>
      <details>
        <summary>The whole input</summary>
        <pre class="live-input" tabIndex={0} role="region" aria-label="The input of the call">
          <Text
            text={
              one.input === null
                ? 'It is longer than what is shown here: cortex session show has it.'
                : JSON.stringify(one.input, null, 2)
            }
            most={6000}
          />
        </pre>
      </details>
      {may('session:approve') && asked === null && (
        <p class="live-buttons">
          <button type="button" class="primary" disabled={isSending} onClick={() => begin('once')}>
            Approve once
          </button>
          <button type="button" disabled={isSending} onClick={() => begin('session')}>
            Approve for this session
          </button>
          <button type="button" disabled={isSending} onClick={() => send('deny')}>
            Deny
          </button>
        </p>
      )}
      {asked !== null && (
        <div class="live-sure" role="alertdialog" aria-label="Are you sure?">
          <p>
            {one.dangerous && (
              <>
                Rule <Text text={one.rule} most={10} /> forbids this.{' '}
              </>
            )}
            {asked === 'session'
              ? 'Each call with exactly this input is allowed until the session ends.'
              : 'It is allowed once.'}
          </p>
          <p class="live-buttons">
            <button ref={sure} type="button" onClick={() => setAsked(null)}>
              Cancel
            </button>
            <button
              type="button"
              class="live-allow"
              disabled={isSending}
              onClick={() => send(asked)}
            >
              {one.dangerous ? 'Allow it anyway' : 'Allow it'}
            </button>
          </p>
        </div>
      )}
    </li>
  );
}
