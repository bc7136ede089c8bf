// files.tsx - every file of the bundle with its hash and its content.

import {useEffect, useMemo, useState} from 'preact/hooks';
import {getText, segments} from '../../base/api';
import {bytes, count, shortId} from '../../base/format';
import {adjust, route} from '../../base/router';
import {plain} from '../../base/text';
import {VirtualList} from '../../ui/list';
import {Answer, Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {copy} from '../../ui/toast';
import {Value} from '../../ui/value';
import {CodeText} from './code';
import type {RunModel} from './model';
import type {FileItem} from './types';

const MOST_BYTES = 4 << 20;
/** What people look for first. */
const FIRST = ['contract.json', 'manifest.json', 'patch.diff'];

function rank(path: string): number {
  const first = FIRST.indexOf(path);
  return first >= 0
    ? first
    : path.startsWith('reports/')
      ? FIRST.length
      : path.startsWith('tests/')
        ? FIRST.length + 1
        : FIRST.length + 2;
}

export function FilesPane({model}: {model: RunModel}) {
  return (
    <Answer of={model.files.signal.value} what="Loading the files">
      {(files) =>
        files.items.length === 0 ? (
          <Empty title="The bundle has no files yet">Files are written during the run.</Empty>
        ) : (
          <Files items={files.items} model={model} />
        )
      }
    </Answer>
  );
}

function Files({items, model}: {items: readonly FileItem[]; model: RunModel}) {
  const sorted = useMemo(
    () => [...items].sort((a, b) => rank(a.path) - rank(b.path) || (a.path < b.path ? -1 : 1)),
    [items],
  );
  const wanted = route.value.query['file'];
  const at = sorted.findIndex((file) => file.path === wanted);
  return (
    <div class="files-pane">
      <VirtualList
        items={sorted}
        rowHeight={28}
        label="Files of the bundle"
        class="files-list"
        keyOf={(file) => file.path}
        active={at}
        onActive={(i) => adjust({file: sorted[i]!.path}, false)}
        render={(file) => (
          <>
            <Line text={file.path} most={120} />
            <span class="dim file-size">{bytes(file.size_bytes)}</span>
          </>
        )}
      />
      <div class="file-view">
        {at < 0 ? (
          <Empty
            title={wanted ? 'No such file in the bundle' : 'No file selected'}
          >{`Choose one of ${count(sorted.length)} files. Files are shown as stored.`}</Empty>
        ) : (
          <FileView key={sorted[at]!.path + sorted[at]!.sha256} file={sorted[at]!} model={model} />
        )}
      </div>
    </div>
  );
}

function FileView({file, model}: {file: FileItem; model: RunModel}) {
  const [got, setGot] = useState<{text: string; isCut: boolean} | Error | null>(null);
  const address = model.path(`/artifacts/${segments(file.path)}`);
  useEffect(() => {
    const abort = new AbortController();
    getText(address, MOST_BYTES, abort.signal).then(setGot, (error: Error) => {
      if (!abort.signal.aborted) setGot(error);
    });
    return () => abort.abort();
  }, [address]);
  return (
    <section aria-label={plain(`File ${file.path}`)} class="file-open">
      <header>
        <h3 class="line">
          <Text text={file.path} most={160} />
        </h3>
        <button
          type="button"
          class="link mono"
          title="Copy its SHA-256"
          onClick={() => copy(file.sha256, 'Hash')}
        >
          {shortId(file.sha256)}
        </button>
        <a
          href={address}
          download={plain(file.path.slice(file.path.lastIndexOf('/') + 1)).replace(
            /[^\w.-]+/g,
            '_',
          )}
        >
          Download
        </a>
      </header>
      {got === null ? (
        <Loading what="Loading the file" />
      ) : got instanceof Error ? (
        <Failed error={got} />
      ) : (
        <Content file={file} text={got.text} isCut={got.isCut} />
      )}
    </section>
  );
}

function Content({file, text, isCut}: {file: FileItem; text: string; isCut: boolean}) {
  const [asText, setAsText] = useState(false);
  const isJson = file.path.endsWith('.json');
  const lines = useMemo(() => text.replace(/\n$/, '').split('\n'), [text]);
  if (text === '') return <Empty title="The file is empty" />;
  if (text.slice(0, 8000).includes('\0'))
    return (
      <Empty title="Binary file">{`${bytes(file.size_bytes)} of binary data: download the file to view it.`}</Empty>
    );
  return (
    <>
      {isJson && (
        <div class="file-tools">
          <button type="button" aria-pressed={!asText} onClick={() => setAsText(false)}>
            Tree
          </button>
          <button type="button" aria-pressed={asText} onClick={() => setAsText(true)}>
            Text
          </button>
        </div>
      )}
      {isCut && (
        <p class="dim file-cut">{`Truncated: the first ${bytes(MOST_BYTES)} of ${bytes(file.size_bytes)}.`}</p>
      )}
      {isJson && !asText ? (
        <div class="file-tree">
          <Value value={{cut: isCut, size: file.size_bytes, text}} />
        </div>
      ) : (
        <VirtualList
          items={lines}
          rowHeight={18}
          label="Lines"
          class="rows"
          keyOf={(_, i) => String(i)}
          render={(line, i) => (
            <span class="diff-row">
              <span class="diff-no" aria-hidden="true">
                {i + 1}
              </span>
              <CodeText text={line} most={1000} />
            </span>
          )}
        />
      )}
    </>
  );
}
