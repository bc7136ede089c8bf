// limits.tsx - what a session may do now, and how it is narrowed.

import {useState} from 'preact/hooks';
import type {LiveLimited, LivePolicy} from '../../base/api-types';
import {change} from '../../base/api';
import {shortId} from '../../base/format';
import {may} from '../../base/session';
import {Text} from '../../ui/text';
import {say} from '../../ui/toast';
import {pathsOf, policyWords} from './model';

interface Props {
  path: string;
  policy: LivePolicy | null;
  ended: boolean;
  again(): void;
}

export function Limits({path, policy, ended, again}: Props) {
  return (
    <section aria-labelledby="live-limits">
      <h2 id="live-limits">Limits</h2>
      {policy === null ? (
        <p>
          No policy could be read: every call is forbidden (rule L03), unless the mode is observe.
        </p>
      ) : (
        <>
          <p class="dim">
            {policy.from === 'commit' && policy.commit
              ? `policies/live.json of commit ${shortId(policy.commit)}`
              : 'The built-in policy'}
            {policy.contract && (
              <>
                , with the contract <Text text={policy.contract} most={80} />
              </>
            )}
          </p>
          <ul class="live-policy">
            {policyWords(policy).map((words) => (
              <li key={words}>
                <Text text={words} most={400} />
              </li>
            ))}
          </ul>
          {may('session:approve') && !ended && <Narrow path={path} policy={policy} again={again} />}
        </>
      )}
    </section>
  );
}

const MODES = ['observe', 'ask', 'enforce'];

function Narrow({path, policy, again}: {path: string; policy: LivePolicy; again(): void}) {
  const [paths, setPaths] = useState('');
  const [noNetwork, setNoNetwork] = useState(false);
  const [noUnlisted, setNoUnlisted] = useState(false);
  const [mode, setMode] = useState('');
  const limit: Record<string, unknown> = {};
  if (pathsOf(paths).length > 0) limit['paths'] = pathsOf(paths);
  if (noNetwork) limit['network'] = 'deny';
  if (noUnlisted) limit['deny_unlisted'] = true;
  if (mode) limit['mode'] = mode;
  const isEmpty = Object.keys(limit).length === 0;
  const send = (event: Event): void => {
    event.preventDefault();
    if (isEmpty) return;
    change<LiveLimited>('POST', `${path}/limit`, limit).then(
      () => {
        say('Narrowed, from the next call on');
        setPaths('');
        setNoNetwork(false);
        setNoUnlisted(false);
        setMode('');
        again();
      },
      (error: Error) => say(error.message, 'bad'),
    );
  };
  const stricter = MODES.slice(MODES.indexOf(policy.mode) + 1);
  return (
    <details class="live-narrow">
      <summary>Narrow this session</summary>
      <form onSubmit={send}>
        <p class="dim">A limit cannot be taken back: it holds until the session ends.</p>
        <label>
          Write only below{' '}
          <input
            type="text"
            value={paths}
            placeholder="src/, docs/guide.md"
            onInput={(event) => setPaths(event.currentTarget.value)}
          />
        </label>
        {policy.network !== 'deny' && (
          <label>
            <input
              type="checkbox"
              checked={noNetwork}
              onChange={(event) => setNoNetwork(event.currentTarget.checked)}
            />{' '}
            No network
          </label>
        )}
        {policy.unlisted !== 'deny' && (
          <label>
            <input
              type="checkbox"
              checked={noUnlisted}
              onChange={(event) => setNoUnlisted(event.currentTarget.checked)}
            />{' '}
            Deny what nothing allows, without asking
          </label>
        )}
        {stricter.length > 0 && (
          <label>
            Mode{' '}
            <select value={mode} onChange={(event) => setMode(event.currentTarget.value)}>
              <option value="">as it is</option>
              {stricter.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        )}
        <button type="submit" disabled={isEmpty}>
          Narrow
        </button>
      </form>
    </details>
  );
}
