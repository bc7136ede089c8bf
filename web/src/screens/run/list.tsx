// list.tsx - all governed runs, newest first.

import type {RunItems} from '../../base/api-types';
import {useEffect, useState} from 'preact/hooks';
import {ApiError, get} from '../../base/api';
import {ago, duration} from '../../base/format';
import {adjust, go, route} from '../../base/router';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {seconds, statusTone, type RunItem} from './types';

interface Listed {
  items: readonly RunItem[];
  next: string | null;
  error: Error | null;
  isReading: boolean;
}

const NOTHING: Listed = {items: [], next: null, error: null, isReading: true};
const STATUSES = ['', 'RUNNING', 'SUCCESS', 'FAILURE'];
const WORDS = ['All', 'Running', 'Success', 'Failure'];

export function RunList() {
  const status = route.value.query['status'] ?? '';
  const [listed, setListed] = useState<Listed>(NOTHING);
  const [active, setActive] = useState(0);
  const read = (cursor: string | null, before: readonly RunItem[]): AbortController => {
    const abort = new AbortController();
    get<RunItems>('/api/v1/runs', {limit: 200, status, cursor}, abort.signal).then(
      (page) =>
        setListed({
          items: [...before, ...page.items],
          next: page.next,
          error: null,
          isReading: false,
        }),
      (error: Error) =>
        !abort.signal.aborted && setListed({items: before, next: null, error, isReading: false}),
    );
    return abort;
  };
  useEffect(() => {
    setListed(NOTHING);
    const abort = read(null, []);
    return () => abort.abort();
  }, [status]);
  return (
    <>
      <header class="screen-head">
        <h1>Runs</h1>
        <span class="run-choices" role="group" aria-label="Filter by status">
          {STATUSES.map((one, i) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === status}
              onClick={() => adjust({status: one})}
            >
              {WORDS[i]}
            </button>
          ))}
        </span>
      </header>
      <div class="run-list">
        <Items
          listed={listed}
          active={active}
          setActive={setActive}
          more={() => {
            if (listed.next === null || listed.isReading) return;
            setListed({...listed, isReading: true});
            read(listed.next, listed.items);
          }}
        />
      </div>
    </>
  );
}

function Items({
  listed,
  active,
  setActive,
  more,
}: {
  listed: Listed;
  active: number;
  setActive: (index: number) => void;
  more: () => void;
}) {
  if (listed.error instanceof ApiError && listed.error.status === 501)
    return (
      <Empty title="This server serves no repository">
        Start <code>cortex serve --repo DIR</code> to show the runs of a repository.
      </Empty>
    );
  if (listed.error) return <Failed error={listed.error} />;
  if (listed.items.length === 0)
    return listed.isReading ? (
      <Loading what="Loading the runs" />
    ) : (
      <Empty title="No runs">
        <p>
          <code>cortex contract new</code> creates a contract, <code>cortex run</code> starts a run.
        </p>
      </Empty>
    );
  return (
    <VirtualList
      items={listed.items}
      rowHeight={44}
      label="Runs"
      keyOf={(run) => run.run_id}
      active={active}
      onActive={setActive}
      onOpen={(i) => go('run', listed.items[i]!.run_id)}
      onEnd={more}
      render={(run) => <Row run={run} />}
    />
  );
}

function Row({run}: {run: RunItem}) {
  const from = seconds(run.created_at);
  const to = seconds(run.finished_at);
  return (
    <span class="run-row">
      <span class="run-row-status">
        <Badge tone={statusTone(run.status)} icon={run.status === 'RUNNING' ? 'clock' : undefined}>
          {plain(run.status, 20).toLowerCase()}
        </Badge>
      </span>
      <span class="run-row-name">
        <Line text={run.task_id ?? run.run_id} most={100} />
        <Line class="dim mono" text={run.run_id} most={60} />
      </span>
      {run.failed_gate && (
        <span class="dim">
          gate{' '}
          <b>
            <Line text={run.failed_gate} most={30} />
          </b>
        </span>
      )}
      <span class="grow" />
      {run.sealed && <Icon name="shield" class="good" label="sealed in the ledger" />}
      <span class="dim run-row-time">
        {Number.isFinite(from) ? ago(from) : ''}
        {to >= from ? `, ${duration(to - from)}` : ''}
      </span>
    </span>
  );
}
