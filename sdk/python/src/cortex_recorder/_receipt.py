"""What flush() returns."""
from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Optional, Union

from ._errors import UsageError


class Receipt(NamedTuple):
    """What the server said about the newest step, and a proof of it for cortex-verify."""
    agent: str
    delivered: int               # steps of this process that are durable
    rejected: int                # that the server did not take
    dropped: int                 # that were not recorded at all
    hash: Optional[str]          # of the newest step's node; None: nothing was recorded
    seq: Optional[int]           # its number in the agent's history
    entry: Optional[int]         # its number in the journal
    root: Optional[str]          # the root of the journal that the proof leads to
    size: Optional[int]          # how many entries that journal has
    leaf: Optional[str]
    proof: Optional[bytes]       # inclusion proof (docs/formats/proof.md)
    checkpoint: Optional[str]    # a signed checkpoint of that journal, if the server has one
    unproven: Optional[str]      # why there is no proof

    def save(self, path: Union[str, "os.PathLike[str]"]) -> str:
        """Writes the proof (and PATH.checkpoint) and returns the command that checks it."""
        if self.proof is None:
            raise UsageError(f"there is no proof to save: {self.unproven}")
        place = Path(path)
        place.write_bytes(self.proof)
        if self.checkpoint is None:
            return f"cortex-verify --root {self.root} --size {self.size} --leaf {self.leaf} {place}"
        note = place.with_name(place.name + ".checkpoint")
        note.write_text(self.checkpoint)
        return f"cortex-verify --key KEY --checkpoint {note} --leaf {self.leaf} {place}"
