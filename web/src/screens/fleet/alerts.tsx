// alerts.tsx - findings of the detectors, and buttons that acknowledge or resolve them.

import {useState} from 'preact/hooks';
import {change} from '../../base/api';
import {plural, shortAgent} from '../../base/format';
import {linkTo} from '../../base/router';
import {may} from '../../base/session';
import {Badge} from '../../ui/badge';
import {Line, Text} from '../../ui/text';
import {say} from '../../ui/toast';
import {when} from '../trace/model';
import {MECHANISMS, type Alert} from './model';

function number(value: number | null): string {
  return value === null ? '\u2013' : Number(value.toFixed(3)).toString();
}

export function Alerts({alerts, again}: {alerts: readonly Alert[]; again(): void}) {
  const allowed = may('key:admin');
  return (
    <>
      {!allowed && alerts.length > 0 && (
        <p class="dim fleet-note">
          Acknowledging and resolving requires a token with scope <code>key:admin</code>, so that an
          agent cannot silence alerts about itself.
        </p>
      )}
      <ul class="fleet-alerts">
        {alerts.map((alert) => (
          <li key={alert.alert_id}>
            <One alert={alert} allowed={allowed} again={again} />
          </li>
        ))}
      </ul>
    </>
  );
}

function One({alert, allowed, again}: {alert: Alert; allowed: boolean; again(): void}) {
  const [notes, setNotes] = useState('');
  const mark = (what: 'acknowledge' | 'resolve'): void => {
    change(
      'POST',
      `/api/v1/covenant/alerts/${encodeURIComponent(alert.alert_id)}/${what}`,
      notes ? {notes} : {},
    ).then(
      () => {
        say(what === 'resolve' ? 'Resolved' : 'Acknowledged');
        again();
      },
      (error: Error) => say(error.message, 'bad'),
    );
  };
  return (
    <article class={`fleet-alert ${alert.resolved ? 'fleet-done' : ''}`}>
      <header>
        <Badge tone={alert.severity === 'critical' ? 'bad' : 'warn'}>{alert.severity}</Badge>
        <h3>
          {MECHANISMS[alert.detection_mechanism] ?? (
            <Text text={alert.detection_mechanism} most={60} />
          )}
        </h3>
        {alert.resolved ? (
          <Badge tone="good">resolved</Badge>
        ) : (
          alert.acknowledged && <Badge tone="info">seen</Badge>
        )}
      </header>
      <p class="dim">
        {alert.agent_id_hash && (
          <a class="mono" href={linkTo('fleet', '', {agent: alert.agent_id_hash})}>
            <Line text={shortAgent(alert.agent_id_hash)} most={40} />
          </a>
        )}
        {alert.domain && (
          <>
            {' in '}
            <Text text={alert.domain} most={60} />
          </>
        )}
        {` ${when(alert.timestamp)}`}
      </p>
      {alert.value !== null && (
        <p class="mono">
          {`${alert.metric ?? 'value'} ${number(alert.value)}`}
          {alert.baseline !== null && (
            <span class="dim">{`, baseline ${number(alert.baseline)}`}</span>
          )}
          {alert.deviation !== null && (
            <span class="dim">{`, deviation ${number(alert.deviation)}`}</span>
          )}
        </p>
      )}
      {alert.recommended_action && (
        <p>
          <Text text={alert.recommended_action} most={400} />
        </p>
      )}
      {alert.evidence_traces.length > 0 && (
        <p>
          {`${plural(alert.evidence_traces.length, 'trace')}: `}
          {alert.evidence_traces.slice(0, 5).map((id) => (
            <a
              key={id}
              class="mono fleet-evidence"
              href={linkTo('trace', id, alert.agent_id_hash ? {agent: alert.agent_id_hash} : {})}
            >
              <Line text={id} most={48} />
            </a>
          ))}
        </p>
      )}
      {allowed && !alert.resolved && (
        <div class="fleet-act">
          <input
            aria-label="Notes"
            placeholder="Notes"
            value={notes}
            maxLength={500}
            onInput={(event) => setNotes(event.currentTarget.value)}
          />
          {!alert.acknowledged && (
            <button type="button" onClick={() => mark('acknowledge')}>
              Acknowledge
            </button>
          )}
          <button type="button" onClick={() => mark('resolve')}>
            Resolve
          </button>
        </div>
      )}
      {(alert.acknowledged_by ?? alert.resolved_by) && (
        <p class="dim">
          by <Text text={(alert.resolved_by ?? alert.acknowledged_by)!} most={60} />
        </p>
      )}
    </article>
  );
}
