// changes.tsx - the patch: files, each inside or outside of the allowed paths, and the visible
// rows.

import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {getText} from '../../base/api';
import {bytes, count, plural} from '../../base/format';
import {useAnswer} from '../../base/load';
import {adjust, route} from '../../base/router';
import {session} from '../../base/session';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {FileLink} from '../../ui/file_link';
import {Icon, type IconName} from '../../ui/icon';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {CodeText} from './code';
import {outside, parseDiff, type Diff, type DiffFile, type DiffRow, type FileKind} from './diff';
import type {RunModel} from './model';
import {readViolation} from './types';

const MOST_BYTES = 16 << 20;
const ROW = 18;
const COLUMNS_MAX = 1000;
const SIGNS: Readonly<Record<FileKind, [IconName, string]>> = {
  added: ['plus', 'added'],
  deleted: ['minus', 'deleted'],
  renamed: ['next', 'renamed'],
  copied: ['fork', 'copied'],
  changed: ['dot', 'changed'],
};

interface Fetched {
  diff: Diff | null;
  isCut: boolean;
  error: Error | null;
}

function usePatch(model: RunModel): Fetched {
  const [state, setState] = useState<Fetched>({diff: null, isCut: false, error: null});
  const round = model.ending.value;
  useEffect(() => {
    const abort = new AbortController();
    getText(model.path('/diff'), MOST_BYTES, abort.signal).then(
      (got) => setState({diff: parseDiff(got.text), isCut: got.isCut, error: null}),
      (error: Error) => {
        if (!abort.signal.aborted) setState({diff: null, isCut: false, error});
      },
    );
    return () => abort.abort();
  }, [model, round]);
  return state;
}

interface Judged {
  file: DiffFile;
  outside: string[];
  rules: string[];
}

export function ChangesPane({model}: {model: RunModel}) {
  const patch = usePatch(model);
  const contract = useAnswer<{allowed_paths?: unknown}>(model.path('/artifacts/contract.json'));
  const gates = model.gates.signal.value.value;
  const allowed = useMemo(() => {
    const list = contract.value?.allowed_paths;
    return Array.isArray(list)
      ? list.filter((one): one is string => typeof one === 'string')
      : null;
  }, [contract.value]);
  const judged = useMemo(
    () =>
      pathsNote(
        patch.diff,
        allowed,
        gates?.verdicts.filter((one) => one.gate === 'diff').flatMap((one) => one.violations) ?? [],
      ),
    [patch.diff, allowed, gates],
  );
  if (patch.error) {
    return model.isRunning.value ? (
      <Empty title="No patch yet">The patch is written when the agent ends.</Empty>
    ) : (
      <Failed error={patch.error} />
    );
  }
  if (!patch.diff) return <Loading what="Loading the patch" />;
  if (patch.diff.files.length === 0)
    return (
      <Empty title="No changes">
        {model.isRunning.value
          ? 'The patch is written when the agent ends.'
          : 'The patch of this run is empty.'}
      </Empty>
    );
  return (
    <Patch
      diff={patch.diff}
      judged={judged}
      allowed={allowed}
      isCut={patch.isCut || patch.diff.isCut}
    />
  );
}

function pathsNote(
  diff: Diff | null,
  allowed: readonly string[] | null,
  violations: readonly string[],
): Judged[] {
  const read = violations.map(readViolation).filter((one) => one.rule !== '');
  return (diff?.files ?? []).map((file) => ({
    file,
    outside: allowed === null ? [] : outside(file, allowed),
    rules: [
      ...new Set(
        read
          .filter((one) => one.about === file.path || one.about === file.from)
          .map((one) => one.rule),
      ),
    ],
  }));
}

function Patch({
  diff,
  judged,
  allowed,
  isCut,
}: {
  diff: Diff;
  judged: Judged[];
  allowed: readonly string[] | null;
  isCut: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(0);
  const wrong = judged.filter((one) => one.outside.length > 0).length;
  const wanted = route.value.query['path'];
  const show = (file: DiffFile): void => {
    setAt(file.row);
    const list = box.current?.querySelector('.list');
    if (list) list.scrollTop = file.row * ROW;
  };
  useEffect(() => {
    const found = judged.find((one) => one.file.path === wanted);
    if (found) show(found.file);
  }, [wanted, diff]);
  const added = diff.files.reduce((sum, file) => sum + file.added, 0);
  const removed = diff.files.reduce((sum, file) => sum + file.removed, 0);
  return (
    <div class="changes-pane" ref={box}>
      <div class="changes-head">
        <strong>{plural(diff.files.length, 'file')}</strong>
        <span class="mono">
          <span class="plus">{`+${count(added)}`}</span>{' '}
          <span class="minus">{`\u2212${count(removed)}`}</span>
        </span>
        {allowed !== null &&
          (wrong === 0 ? (
            <Badge tone="good">all inside the allowed paths</Badge>
          ) : (
            <Badge tone="bad">{`${plural(wrong, 'file')} outside the allowed paths`}</Badge>
          ))}
        {allowed !== null && (
          <span class="changes-allowed">
            <span class="dim">allowed:</span>
            {allowed.slice(0, 20).map((path, i) => (
              <code key={i}>
                <Line text={path} most={60} />
              </code>
            ))}
            {allowed.length > 20 && (
              <span class="dim">{`and ${count(allowed.length - 20)} more`}</span>
            )}
          </span>
        )}
      </div>
      {isCut && (
        <p class="changes-cut">
          <Icon name="warn" />{' '}
          {`Truncated: the first ${bytes(MOST_BYTES)} (${count(diff.rows.length)} rows) are shown. See patch.diff for the complete patch.`}
        </p>
      )}
      <div class="changes-body">
        <VirtualList
          items={judged}
          rowHeight={30}
          label="Changed files"
          class="changes-files"
          keyOf={(_, i) => String(i)}
          active={judged.findIndex((one) => one.file.path === wanted)}
          onActive={(i) => {
            adjust({path: judged[i]!.file.path}, false);
            show(judged[i]!.file);
          }}
          render={(one) => <FileRow one={one} knows={allowed !== null} />}
        />
        <div
          class="changes-rows"
          style={{'--columns': String(Math.min(diff.columns, COLUMNS_MAX) + 14)}}
        >
          <VirtualList
            items={diff.rows}
            rowHeight={ROW}
            label="Patch"
            class="rows"
            keyOf={(_, i) => String(i)}
            active={at}
            onActive={setAt}
            render={(row) => <Row row={row} judged={judged} />}
          />
        </div>
      </div>
    </div>
  );
}

function FileRow({one, knows}: {one: Judged; knows: boolean}) {
  const [sign, word] = SIGNS[one.file.kind];
  const slash = one.file.path.lastIndexOf('/');
  return (
    <span class="file-row" title={one.outside.length > 0 ? 'outside the allowed paths' : undefined}>
      <Icon name={sign} label={word} class={`kind-${one.file.kind}`} />
      <span class="file-name">
        <span class="file-base">
          <Line text={one.file.path.slice(slash + 1)} most={80} />
        </span>
        {slash >= 0 && <Line class="dim" text={one.file.path.slice(0, slash + 1)} most={80} />}
      </span>
      {one.outside.length > 0 ? (
        <Badge tone="bad">outside</Badge>
      ) : (
        knows && <Icon name="check" class="good" label="inside the allowed paths" />
      )}
      {one.rules
        .filter((rule) => rule !== 'D07')
        .map((rule) => (
          <Badge key={rule} tone="bad" icon={null}>
            {rule}
          </Badge>
        ))}
      <span class="mono plus">{`+${one.file.added}`}</span>
      <span class="mono minus">{`\u2212${one.file.removed}`}</span>
    </span>
  );
}

function Row({row, judged}: {row: DiffRow; judged: readonly Judged[]}) {
  if (row.kind === 'file') {
    const one = judged[row.file]!;
    return (
      <span class={`diff-row diff-file ${one.outside.length > 0 ? 'diff-outside' : ''}`}>
        <span class="diff-name">
          {one.file.from !== null && (
            <>
              <Line text={one.file.from} most={160} />
              {' \u2192 '}
            </>
          )}
          <FileLink path={one.file.path} root={session.value?.folder}>
            <Line text={one.file.path} most={200} />
          </FileLink>
        </span>
        <span class="dim">
          {SIGNS[one.file.kind][1]}
          {one.file.mode && `, mode ${plain(one.file.mode, 40)}`}
        </span>
        {one.outside.length > 0 && <Badge tone="bad">outside the allowed paths</Badge>}
      </span>
    );
  }
  const sign = row.kind === 'add' ? '+' : row.kind === 'del' ? '\u2212' : ' ';
  const path = judged[row.file]?.file.path ?? '';
  return (
    <span class={`diff-row diff-${row.kind}`}>
      <span class="diff-no" aria-hidden="true">
        {row.oldLine || ''}
      </span>
      <span class="diff-no" aria-hidden="true">
        {row.newLine > 0 && (
          <FileLink path={path} line={row.newLine} root={session.value?.folder} isQuiet>
            {row.newLine}
          </FileLink>
        )}
      </span>
      <span class="diff-sign">{sign}</span>
      <CodeText text={row.text} most={COLUMNS_MAX} />
    </span>
  );
}
