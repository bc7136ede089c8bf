// sign_in.tsx - shown without a token, or after the session has ended.

import {useState} from 'preact/hooks';
import {startSession} from '../base/session';
import {Failed} from './states';

export function SignIn() {
  const [token, setToken] = useState('');
  const [error, setError] = useState<Error | null>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    startSession(token.trim()).then(
      () => setToken(''),
      (reason: Error) => setError(reason),
    );
  };
  return (
    <main class="alone">
      <form class="sign-in" onSubmit={submit}>
        <h1>cortex</h1>
        <p>
          Sign in with a token to see the records of this server. <code>cortex serve</code> prints
          an address that contains a token; <code>cortex token add</code> creates another one.
        </p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={token.trim() === ''}>
          Sign in
        </button>
        {error && <Failed error={error} />}
      </form>
    </main>
  );
}
