"""python -m cortex_recorder: a key for an agent, and what waits in the spool of this machine."""
from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import List, Optional

from . import __version__, init
from ._client import spool_folder
from ._errors import CortexError, NotDelivered
from ._keys import default_key_path, new_key
from ._values import base64_of


def _keygen(args: argparse.Namespace) -> int:
    path = Path(args.file) if args.file else default_key_path(args.agent)
    key = new_key(path, args.agent)
    print(f"wrote {path}")
    print(f"cortex key add --id {key.key_id} --public-key {base64_of(key.public)} --agent {args.agent}")
    return 0


def _status(args: argparse.Namespace) -> int:
    base = spool_folder("", "").parent if args.spool is None else Path(args.spool)
    folders = sorted(p for p in base.iterdir() if p.is_dir()) if base.is_dir() else []
    for folder in folders:
        size = sum(p.stat().st_size for p in folder.glob("*.seg"))
        rejected = folder / "rejected.jsonl"
        lost = sum(1 for _ in open(rejected, "rb")) if rejected.exists() else 0
        print(f"{folder.name}: {size} bytes in segments, {lost} rejected")
    if not folders:
        print(f"nothing waits in {base}")
    return 0


def _deliver(args: argparse.Namespace) -> int:
    """Adopts what processes of the agent left, and delivers it."""
    import time
    with init(args.agent, url=args.url, spool=args.spool, exit_timeout=0.0) as cx:
        end = time.monotonic() + args.timeout
        while any(not part.empty for part in cx._spool.parts()):
            if time.monotonic() > end:
                raise NotDelivered(f"not everything was delivered in {args.timeout:g} s: "
                                   f"{cx._last_problem or 'no answer yet'}", 1)
            time.sleep(0.05)
        print(f"nothing waits for {args.agent}; {cx.stats.rejected} rejected")
        return 1 if cx.stats.rejected else 0


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cortex_recorder", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    keygen = commands.add_parser("keygen", help="write a new signing key of an agent")
    keygen.add_argument("agent")
    keygen.add_argument("--file", help="default ~/.config/cortex/keys/AGENT.key")
    keygen.set_defaults(call=_keygen)
    status = commands.add_parser("status", help="show what waits in the spool")
    status.add_argument("--spool", default=os.environ.get("CORTEX_SPOOL"))
    status.set_defaults(call=_status)
    deliver = commands.add_parser("deliver", help="deliver what processes of an agent left")
    deliver.add_argument("agent")
    deliver.add_argument("--url")
    deliver.add_argument("--spool", default=os.environ.get("CORTEX_SPOOL"))
    deliver.add_argument("--timeout", type=float, default=30.0)
    deliver.set_defaults(call=_deliver)
    args = parser.parse_args(words)
    try:
        return int(args.call(args))
    except NotDelivered as error:
        print(f"cortex_recorder: {error}", file=sys.stderr)
        return 3
    except CortexError as error:
        print(f"cortex_recorder: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
