// chain.tsx - a proof drawn hash by hash: each step combines two hashes, one of them computed here.

import {useState} from 'preact/hooks';
import {plural} from '../../base/format';
import {Icon} from '../../ui/icon';
import {Digest, Text} from '../../ui/text';
import {equal, toHex} from '../../proof/bytes';
import type {Chain} from '../../proof/check';
import type {Step} from '../../proof/journal';

const FEW = 24;

function Hash({bytes, kind}: {bytes: Uint8Array; kind: 'ours' | 'given' | 'empty' | 'result'}) {
  const hex = toHex(bytes);
  return (
    <span class={`hash hash-${kind}`} title={hex}>
      {kind === 'empty' ? (
        'empty'
      ) : (
        <>
          {hex.slice(0, 8)}
          <span class="hash-rest">{'\u2026' + hex.slice(-4)}</span>
        </>
      )}
    </span>
  );
}

const isEmpty = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

function Rung({step, number}: {step: Step; number: number}) {
  const kind = (side: 'left' | 'right', bytes: Uint8Array) =>
    step.ours === side ? 'ours' : isEmpty(bytes) ? 'empty' : 'given';
  return (
    <li class="proof-rung">
      <span class="rung-number">{number}</span>
      <Hash bytes={step.left} kind={kind('left', step.left)} />
      <span class="rung-join" aria-hidden="true">
        {'\u2016'}
      </span>
      <Hash bytes={step.right} kind={kind('right', step.right)} />
      <span class="rung-arrow" role="img" aria-label="gives">
        {'\u2192'}
      </span>
      <Hash bytes={step.result} kind="result" />
    </li>
  );
}

export function ChainView({chain}: {chain: Chain}) {
  const [all, setAll] = useState(false);
  const good = chain.expected !== null && equal(chain.computed, chain.expected);
  const shown = all || chain.steps.length <= FEW ? chain.steps : chain.steps.slice(0, FEW);
  return (
    <section class="proof-chain">
      <h3>
        <Text text={chain.title} most={120} />
      </h3>
      <p class="dim">
        {`From ${chain.from}`}
        {chain.steps.length > 0 ? `, ${plural(chain.steps.length, 'hash', 'hashes')} up` : ''}
      </p>
      {shown.length > 0 && (
        <ol class="proof-ladder">
          {shown.map((step, i) => (
            <Rung key={i} step={step} number={i + 1} />
          ))}
        </ol>
      )}
      {shown.length < chain.steps.length && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          {`${chain.steps.length - shown.length} more hashes`}
        </button>
      )}
      <div class={`proof-end ${chain.expected === null ? '' : good ? 'proof-good' : 'proof-bad'}`}>
        <dl>
          <dt>computed here</dt>
          <dd>
            <Digest text={toHex(chain.computed)} />
          </dd>
          <dt>{chain.expectedIs}</dt>
          <dd>{chain.expected ? <Digest text={toHex(chain.expected)} /> : 'not given'}</dd>
        </dl>
        {chain.expected && (
          <span class="proof-mark">
            <Icon name={good ? 'check' : 'cross'} label={good ? 'equal' : 'different'} />
            {good ? 'equal' : 'different'}
          </span>
        )}
      </div>
    </section>
  );
}
