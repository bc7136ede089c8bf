"""The agent's key: Ed25519, through the package `cryptography` (extra `signing`)."""
from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any, Optional, Tuple, Union

from ._errors import MissingExtra, UsageError
from ._values import base64_of

_PREFIX = "PRIVATE+KEY+"
_ALGORITHM = b"\x01"  # Ed25519 in the keys of signed notes (c2sp.org/signed-note)


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtra("signing needs the package cryptography: pip install "
                           "'cortex-recorder[signing]', or apt install python3-cryptography") from error
    return ed25519


class SigningKey:
    """A key that signs steps; `key_id` is what the server's trust store calls it."""

    def __init__(self, seed: bytes, agent: str, key_id: Optional[str] = None) -> None:
        if len(seed) != 32:
            raise UsageError(f"an Ed25519 key has 32 bytes, found {len(seed)}")
        self._key = _ed25519().Ed25519PrivateKey.from_private_bytes(seed)
        self.public = _public_bytes(self._key)
        self.agent = agent
        self.key_id = key_id or default_key_id(agent, self.public)

    def sign(self, message: bytes) -> bytes:
        return bytes(self._key.sign(message))

    def signature_of(self, message: bytes) -> "dict[str, str]":
        return {"key_id": self.key_id, "signature": base64_of(self.sign(message))}

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"


def _public_bytes(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization
    return bytes(key.public_key().public_bytes(serialization.Encoding.Raw,
                                               serialization.PublicFormat.Raw))


def default_key_id(agent: str, public: bytes) -> str:
    """The agent's name and the beginning of the key's hash: no two keys share it by accident."""
    return f"{agent[:80]}-{hashlib.sha256(public).hexdigest()[:12]}"


def _seed_of_note(text: str, path: Path) -> bytes:
    """The key file of `cortex key new`: PRIVATE+KEY+NAME+ID+BASE64."""
    parts = text[len(_PREFIX):].split("+", 2)
    try:
        data = base64.b64decode(parts[2], validate=True)
    except (IndexError, ValueError):
        data = b""
    if len(data) != 33 or data[:1] != _ALGORITHM:
        raise UsageError(f"{path}: not an Ed25519 key as 'cortex key new' writes it")
    return data[1:]


def _seed_of_pem(data: bytes, path: Path) -> bytes:
    ed25519 = _ed25519()
    from cryptography.hazmat.primitives import serialization
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: cannot read this PEM key: {error}") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError(f"{path}: found another kind of key, expected Ed25519")
    return bytes(key.private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw,
                                   serialization.NoEncryption()))


def load_key(path: Union[str, "os.PathLike[str]"], agent: str,
             key_id: Optional[str] = None) -> SigningKey:
    """Reads a key file: as `cortex key new` and `new_key` write it, or PKCS #8 in PEM."""
    place = Path(path)
    try:
        with open(place, "rb") as file:
            data = file.read(16384)
    except OSError as error:
        raise UsageError(f"{place}: cannot read the agent's key: {error.strerror}") from error
    text = data.decode("utf-8", "replace").strip()
    if text.startswith(_PREFIX):
        return SigningKey(_seed_of_note(text, place), agent, key_id)
    if text.startswith("-----BEGIN"):
        return SigningKey(_seed_of_pem(data, place), agent, key_id)
    raise UsageError(f"{place}: expected a key file of 'cortex key new', or PEM (PKCS #8)")


def new_key(path: Union[str, "os.PathLike[str]"], agent: str) -> SigningKey:
    """Writes a new key to a file that must not exist, readable by its owner only."""
    _ed25519()
    if not agent or any(c in agent for c in "+ \n\t"):
        raise UsageError("a key's name has no '+' and no spaces")
    place = Path(path)
    seed = os.urandom(32)
    key = SigningKey(seed, agent)
    number = hashlib.sha256(agent.encode() + b"\n" + _ALGORITHM + key.public).hexdigest()[:8]
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{place}: exists already; a key is never overwritten") from None
    with os.fdopen(file, "w") as out:
        out.write(f"{_PREFIX}{agent}+{number}+{base64_of(_ALGORITHM + seed)}\n")
        out.flush()
        os.fsync(out.fileno())
    return key


def default_key_path(agent: str) -> Path:
    from ._values import journal_of
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "cortex" / "keys" / (journal_of(agent) + ".key")


def find_key(key: Union[None, bool, str, "os.PathLike[str]", SigningKey], agent: str,
             key_id: Optional[str]) -> Tuple[Optional[SigningKey], Optional[str]]:
    """The key that init() means, and where it came from. None: $CORTEX_KEY, or the default place, if
    there is one. False: no key."""
    if isinstance(key, SigningKey):
        return key, None
    if key is False:
        return None, None
    if key is not None and key is not True:
        return load_key(key, agent, key_id), str(key)
    named = os.environ.get("CORTEX_KEY")
    if named:
        return load_key(named, agent, key_id), named
    place = default_key_path(agent)
    if place.exists():
        return load_key(place, agent, key_id), str(place)
    if key is True:
        raise UsageError(f"there is no key: neither $CORTEX_KEY nor {place}; "
                         f"'python -m cortex_recorder keygen {agent}' makes one")
    return None, None
