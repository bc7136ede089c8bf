// findings.tsx - findings of the verification, and what they mean.

import {count, shortAgent} from '../../base/format';
import {Badge} from '../../ui/badge';
import {Line, Text} from '../../ui/text';
import type {Model} from './model';
import {MEANING} from './types';

export function Findings({model}: {model: Model}) {
  const summary = model.summary.signal.value.value;
  if (!summary) return null;
  const total = summary.errors + summary.warnings;
  const at = model.detail.value?.n;
  return (
    <div class="findings">
      <ul>
        {summary.findings.map((finding, i) => (
          <li key={i}>
            <button
              type="button"
              class={`finding-row ${finding.n === at ? 'step-now' : ''}`}
              disabled={finding.n === undefined}
              onClick={() => finding.n !== undefined && model.select(finding.n)}
            >
              <span class="step-who">
                <Badge tone={finding.code.startsWith('W') ? 'warn' : 'bad'}>{finding.code}</Badge>
                {finding.agent !== undefined && <Line text={shortAgent(finding.agent)} most={50} />}
                {finding.seq !== undefined && <span class="mono dim">{`#${finding.seq}`}</span>}
              </span>
              <span>{MEANING[finding.code] ?? ''}</span>
              {finding.detail && (
                <span class="dim">
                  <Text text={finding.detail} most={200} />
                </span>
              )}
            </button>
          </li>
        ))}
      </ul>
      {total > summary.findings.length && (
        <p class="dim note">{`The first ${count(summary.findings.length)} of ${count(total)}.`}</p>
      )}
    </div>
  );
}
