// recent.tsx - the newest histories, for a screen that has nothing open.

import type {HistoriesPage} from '../base/api-types';
import {ago, plural} from '../base/format';
import {useAnswer} from '../base/load';
import {linkTo} from '../base/router';
import {connectIsOpen} from '../base/keys';
import {Answer, Empty} from './states';
import {Line} from './text';

const SHOWN = 20;

export function Recent({screen, title}: {screen: string; title: string}) {
  const of = useAnswer<HistoriesPage>('/api/v1/histories', {limit: SHOWN});
  return (
    <Answer of={of} what="Histories">
      {({histories}) =>
        histories.length === 0 ? (
          <Empty title="No histories yet">
            <p>A session, a trace or a recorded step opens here once it has arrived.</p>
            <button type="button" onClick={() => (connectIsOpen.value = true)}>
              Connect an agent
            </button>
          </Empty>
        ) : (
          <section class="recent" aria-labelledby="recent-title">
            <h2 id="recent-title">{title}</h2>
            <ul>
              {histories.map((one) => (
                <li key={one.name}>
                  <a href={linkTo(screen, one.name)}>
                    <Line text={one.title ?? one.path ?? one.name} most={100} />
                  </a>
                  <span class="dim">
                    <Line
                      text={[
                        one.agent,
                        plural(one.steps, 'step'),
                        one.last && Number.isFinite(Date.parse(one.last))
                          ? ago(Date.parse(one.last) / 1000)
                          : null,
                      ]
                        .filter(Boolean)
                        .join(' \u00b7 ')}
                      most={100}
                    />
                  </span>
                </li>
              ))}
            </ul>
            <p>
              <a href={linkTo('inbox', '', {kind: 'history'})}>All histories</a>
              {' \u00b7 '}
              <a href={linkTo(screen, 'all')}>All recorded traces as one</a>
            </p>
          </section>
        )
      }
    </Answer>
  );
}
