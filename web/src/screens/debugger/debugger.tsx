// debugger.tsx - a history as lanes, one moment in focus, and everything else following it.
import {Empty} from '../../ui/states';

export function Debugger() {
  return <Empty title="Choose a history in the inbox" />;
}
