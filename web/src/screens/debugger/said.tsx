// said.tsx - who said something first: text that is selected in the conversation is looked for in
// every step before it.

import {useEffect} from 'preact/hooks';
import type {LatticePlace, LatticeSaid} from '../../base/api-types';
import {plural, shortAgent} from '../../base/format';
import {adjust} from '../../base/router';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import type {Model} from './model';
import {PaneHead} from './pane_head';
import {placeWords, sentenceOf} from './talk';

/** Follows the selection, and offers the question when it is inside of one step. */
export function SaidBar({model}: {model: Model}) {
  useEffect(() => {
    const read = (): void => {
      const chosen = document.getSelection();
      const within = (node: Node | null | undefined): HTMLElement | null => {
        const element = node instanceof Element ? node : node?.parentElement;
        return element?.closest<HTMLElement>('.talk-step[data-n]') ?? null;
      };
      const step = within(chosen?.anchorNode);
      const text = sentenceOf(chosen?.toString() ?? '');
      model.selected.value =
        step && text && step === within(chosen?.focusNode)
          ? {n: Number(step.dataset['n']), text}
          : null;
    };
    document.addEventListener('selectionchange', read);
    return () => {
      document.removeEventListener('selectionchange', read);
      model.selected.value = null;
    };
  }, [model]);
  const selected = model.selected.value;
  if (!selected) return null;
  return (
    <div class="talk-ask">
      <button
        type="button"
        // The selection stays until it was read.
        onMouseDown={(event) => event.preventDefault()}
        onClick={() => {
          model.askSaid(selected.n, selected.text);
          adjust({pane: 'why'}, false);
        }}
      >
        <Icon name="key" /> Who said this first?
      </button>
      <span class="dim line">
        <Line text={selected.text} most={120} />
      </span>
    </div>
  );
}

export function SaidPane({model}: {model: Model}) {
  const asked = model.saidAsked.value;
  if (!asked) return null;
  return (
    <div class="why">
      <PaneHead
        icon="key"
        asked={asked}
        close={() => {
          model.saidAsked.value = null;
        }}
      >
        {'Who said “'}
        <Line text={asked.text} most={80} />
        {'” first?'}
      </PaneHead>
      <Answer of={model.said.signal.value} what="Looking through the steps before">
        {(said) => <Places said={said} model={model} />}
      </Answer>
    </div>
  );
}

function Places({said, model}: {said: LatticeSaid; model: Model}) {
  return (
    <>
      <h3>{`It came through ${plural(said.total, 'step')}, oldest first`}</h3>
      <ol class="chain" aria-label="Places, oldest first">
        {said.places.map((place) => (
          <li key={place.node}>
            <Place place={place} isNow={place.node === model.detail.value?.id} />
          </li>
        ))}
      </ol>
      {said.total > said.places.length && (
        <p class="dim">{`${said.total - said.places.length} later places are not listed.`}</p>
      )}
      <p class="note">Equal text in a step before it: most often its origin, not a proof of one.</p>
    </>
  );
}

function Place({place, isNow}: {place: LatticePlace; isNow: boolean}) {
  return (
    <button
      type="button"
      class={`step ${isNow ? 'step-now' : ''}`}
      aria-current={isNow ? 'step' : undefined}
      onClick={() => adjust({node: place.node})}
    >
      <span class="step-who">
        <Line text={shortAgent(place.agent)} most={50} />
        <span class="mono dim">{`#${place.seq}`}</span>
        <span class="dim">
          <Line text={placeWords(place)} most={120} />
        </span>
        {place.first && (
          <Badge tone="info" icon="key">
            first
          </Badge>
        )}
      </span>
      <span class="step-said">
        <Text text={place.text} most={300} />
      </span>
    </button>
  );
}
