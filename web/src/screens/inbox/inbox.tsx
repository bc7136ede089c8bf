// inbox.tsx - everything that is recorded here, newest first.
import {Empty} from '../../ui/states';

export function Inbox() {
  return <Empty title="Nothing is recorded yet" />;
}
