"""Places in an object store, used as a `Path` is: only what reading and writing results needs of one."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from raybench.errors import StoreError, UsageError

SCHEMES: Final = ("s3", "gs")
READ_TRIES: Final = 5
_FIRST_PAUSE_S: Final = 0.2
_AT_ONCE: Final = 8
_GCS_TRIES_S: Final = 10
_CREDENTIALS: Final = "give credentials that may use it (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE)"
_CURES: Final = {
    "ACCESS_DENIED": _CREDENTIALS,
    "INVALID_ACCESS_KEY_ID": _CREDENTIALS,
    "INVALID_CLIENT_TOKEN_ID": _CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": _CREDENTIALS,
    "MISSING_AUTHENTICATION_TOKEN": _CREDENTIALS,
    "NO_SUCH_BUCKET": "make the bucket, or name another",
}
"""What no second try mends, with what does."""
_AWAY: Final = "see that the store's endpoint is right and can be reached from here"
_AWS_ERROR = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during \w+ operation: (.*)", re.DOTALL)

Result = TypeVar("Result")


class ObjectStoreError(StoreError):
    """An object store that refused or did not answer. `hopeless`: trying again changes nothing."""

    def __init__(self, told: str, *, hopeless: bool) -> None:
        super().__init__(told)
        self.hopeless = hopeless


@dataclass(frozen=True, order=True)
class ObjectPath:
    """An object, or what a folder would be: `key` is bucket and name, `query` the store's options as the URI had them.

    Every method raises `ObjectStoreError`, one line with the cure where one is known.
    """

    scheme: str
    key: str
    query: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return self.joinpath(name)

    def joinpath(self, *names: str) -> ObjectPath:
        """What these names lead to from here."""
        return ObjectPath(self.scheme, "/".join((self.key, *names)), self.query)

    @property
    def name(self) -> str:
        """The last part."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """What it lies in."""
        return ObjectPath(self.scheme, self.key.rpartition("/")[0], self.query)

    @property
    def endpoint(self) -> str:
        """Where the store is, when it is not the provider's own; two of these hold different things."""
        return dict(parse_qsl(self.query)).get("endpoint_override", "")

    def is_file(self) -> bool:
        """Whether there is such an object."""
        with _told(self, "read"):
            return bool(_filesystem(self.scheme, self.query).get_file_info(self.key).is_file)

    def below(self, *, recursive: bool = True) -> list[ObjectPath]:
        """Everything below, sorted: all objects, or one level with its folders. Nothing there is nothing below."""
        selector = pafs.FileSelector(self.key, recursive=recursive, allow_not_found=True)
        with _told(self, "list"):
            infos = _filesystem(self.scheme, self.query).get_file_info(selector)
        return sorted(ObjectPath(self.scheme, info.path, self.query) for info in infos if info.is_file or not recursive)

    def read_bytes(self) -> bytes:
        """The whole object. FileNotFoundError where there is none."""
        with _told(self, "read"), _filesystem(self.scheme, self.query).open_input_stream(self.key) as stream:
            return bytes(stream.read())

    def write_bytes(self, data: bytes) -> None:
        """Put a whole object, replacing what was there: it is seen whole or not at all."""
        with _told(self, "write"), _filesystem(self.scheme, self.query).open_output_stream(self.key) as stream:
            stream.write(data)

    def remove(self) -> None:
        """Remove the object."""
        with _told(self, "remove"):
            _filesystem(self.scheme, self.query).delete_file(self.key)


def object_path(uri: str) -> ObjectPath:
    """The place that a URI names. Raises UsageError for one that cannot be used."""
    parts = urlsplit(uri)
    if parts.scheme not in SCHEMES:
        raise UsageError(f"{_shown(parts)}: results go to a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX")
    if parts.password is not None:
        raise UsageError(f"{_shown(parts)}: a secret in a URI ends up in logs: {_CREDENTIALS}")
    key = f"{parts.netloc}{parts.path}".rstrip("/")
    if not parts.netloc or "//" in key or parts.fragment or {".", ".."} & set(key.split("/")):
        raise UsageError(f"{_shown(parts)}: give {parts.scheme}://BUCKET/PREFIX")
    place = ObjectPath(parts.scheme, key, parts.query)
    try:
        _filesystem(place.scheme, place.query)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"{place}: {str(error).splitlines()[0]}") from None
    return place


def retried(work: Callable[[], Result], tries: int = READ_TRIES) -> Result:
    """Do it again, each time after twice the pause, while the store does not answer."""
    pauses_s = (_FIRST_PAUSE_S * 2**number for number in range(tries - 1))
    while True:
        try:
            return work()
        except ObjectStoreError as error:
            pause_s = next(pauses_s, None)
            if error.hopeless or pause_s is None:
                raise
        time.sleep(pause_s)


def ahead(works: Iterable[Callable[[], Result]]) -> Iterator[Callable[[], Result]]:
    """The same in order, each begun before it is asked for: a store takes long to answer, but several at once."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="raybench-read") as pool:
        begun: deque[Future[Result]] = deque()
        for work in works:
            begun.append(pool.submit(work))
            if len(begun) > _AT_ONCE:
                yield begun.popleft().result
        while begun:
            yield begun.popleft().result


@cache
def _filesystem(scheme: str, query: str) -> Any:
    """The store's file system. It tries once: who asks knows how long trying again is worth."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    if scheme == "gs":
        # Its own limit is 15 minutes; one that the user gave stands.
        limited = query if "retry_limit_seconds" in options else f"{query}&retry_limit_seconds={_GCS_TRIES_S}"
        return pafs.FileSystem.from_uri(f"gs://bucket?{limited.lstrip('&')}")[0]
    unknown = options.keys() - {"region", "scheme", "endpoint_override"}
    if unknown:
        raise ValueError(f"no option {sorted(unknown)[0]!r}; there are region, scheme and endpoint_override")
    once = pafs.AwsStandardS3RetryStrategy(max_attempts=1)
    try:      # one request for a small object; older pyarrow takes three, and shows it whole or not at all, too
        return pafs.S3FileSystem(**options, retry_strategy=once, background_writes=False, allow_delayed_open=True)
    except TypeError:
        return pafs.S3FileSystem(**options, retry_strategy=once, background_writes=False)


@contextmanager
def _told(path: ObjectPath, verb: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if verb == "read":
            raise
        raise ObjectStoreError(f"cannot {verb} {path}: there is no such place", hopeless=True) from None
    except (OSError, pa.ArrowException) as error:
        reason, cure, hopeless = _reason(str(error))
        raise ObjectStoreError(f"cannot {verb} {path}: {reason}{cure and f'; {cure}'}", hopeless=hopeless) from error


def _reason(text: str) -> tuple[str, str, bool]:
    """What the store said, in a line; what to do; and whether trying again is in vain."""
    found = _AWS_ERROR.search(text)
    if found is None:
        return (text.splitlines() or ["no answer"])[0][:300], "", False
    name, status, said = found.groups()
    said = re.sub(r"curlCode: \d+, |\(Request ID:.*?\)|No response body\.", "", said).split("; Details: ")[-1].strip()
    if status == "301":
        return "the bucket is in another region", "give it with ?region=REGION", True
    cure = _CURES.get(name, _AWAY if name == "NETWORK_CONNECTION" else "")
    return f"{name.lower().replace('_', ' ')}{said and f' ({said[:200]})'}", cure, name in _CURES


def _shown(parts: SplitResult) -> str:
    """A URI as it may be printed."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
