"""Copies the files below a prefix of an S3 store to a folder; asks that store and nobody else.

Path-style addresses and Signature Version 4 (Amazon S3 API reference, "Authenticating Requests"),
which MinIO, Ceph and the like take as well. No redirect is followed and no proxy is used. A file
gets its name when all of it is there; one of the same size is left as it is, and the checksum of
the folder decides afterwards.
"""

import hashlib
import hmac
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx

from inventory.files import MOST_FILES

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
CHUNK_BYTES = 8 * 1024 * 1024
MOST_LIST_BYTES = 4 * 1024 * 1024
EMPTY = hashlib.sha256(b"").hexdigest()


class StoreError(Exception):
    """The store did not answer, refused, or said something that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Credentials; `access` empty asks without a signature."""

    access: str = ""
    secret: str = ""
    region: str = "us-east-1"


def keys_from(environment: "os._Environ[str] | dict[str, str]") -> Keys:
    """The usual variables of S3's own tools."""
    return Keys(
        access=environment.get("AWS_ACCESS_KEY_ID", ""),
        secret=environment.get("AWS_SECRET_ACCESS_KEY", ""),
        region=environment.get("AWS_REGION", "us-east-1"),
    )


class Store:
    """One bucket of a store at an address."""

    def __init__(self, endpoint: str, bucket: str, keys: Keys) -> None:
        self._endpoint, self._bucket, self._keys = endpoint.rstrip("/"), bucket, keys
        self._client = httpx.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=False)

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def files(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Key and size of every object below the prefix, at most MOST_FILES. Raises StoreError."""
        token, count = "", 0
        while True:
            query = {"list-type": "2", "max-keys": "1000", "prefix": prefix}
            if token:
                query["continuation-token"] = token
            page = _page(self._ask("", query))
            for key, size in page.files:
                count += 1
                if count > MOST_FILES:
                    raise StoreError(f"There are more than {MOST_FILES} files below {prefix}.")
                yield key, size
            if not page.next:
                return
            token = page.next

    def copy(self, key: str, size: int, to: Path) -> None:
        """Write an object to a file. Raises StoreError."""
        if to.is_file() and to.stat().st_size == size:
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        part = to.with_name(f"{to.name}.part")
        length = 0
        try:
            url, headers = self._request(key, {})
            with (
                self._client.stream("GET", url, headers=headers) as answer,
                part.open("wb") as file,
            ):
                self._require(answer, key)
                for chunk in answer.iter_bytes(CHUNK_BYTES):
                    length += len(chunk)
                    if length > size:
                        break
                    file.write(chunk)
        except httpx.HTTPError as error:
            raise StoreError(f"{self._endpoint} broke off at {key}: {error}.") from error
        except OSError as error:
            raise StoreError(f"{to} cannot be written: {error.strerror}.") from error
        if length != size:
            part.unlink(missing_ok=True)
            raise StoreError(f"{key} has {length} bytes, and {size} were listed.")
        part.replace(to)

    def _ask(self, key: str, query: dict[str, str]) -> bytes:
        try:
            url, headers = self._request(key, query)
            with self._client.stream("GET", url, headers=headers) as answer:
                self._require(answer, key or "the list")
                found = b""
                for chunk in answer.iter_bytes():
                    found += chunk
                    if len(found) > MOST_LIST_BYTES:
                        raise StoreError("The list of files is too long for one page.")
                return found
        except httpx.HTTPError as error:
            raise StoreError(f"{self._endpoint} did not answer: {error}.") from error

    def _require(self, answer: httpx.Response, what: str) -> None:
        if answer.status_code != httpx.codes.OK:
            raise StoreError(f"{self._endpoint} answered {answer.status_code} for {what}.")

    def _request(self, key: str, query: dict[str, str]) -> tuple[str, dict[str, str]]:
        path = quote(f"/{self._bucket}/{key}" if key else f"/{self._bucket}", safe="/-_.~")
        base = urlsplit(self._endpoint)
        path = base.path.rstrip("/") + path
        pairs = sorted(
            (quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items()
        )
        text = "&".join(f"{name}={value}" for name, value in pairs)
        url = f"{base.scheme}://{base.netloc}{path}" + (f"?{text}" if text else "")
        headers = {"host": base.netloc}
        if self._keys.access:
            headers |= signed(self._keys, path, text, base.netloc, datetime.now(UTC))
        return url, headers


def signed(keys: Keys, path: str, query: str, host: str, now: datetime) -> dict[str, str]:
    """Headers that sign a GET without a body."""
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = "\n".join(
        ["GET", path, query, f"host:{host}", f"x-amz-content-sha256:{EMPTY}",
         f"x-amz-date:{stamp}", "", names, EMPTY]
    )  # fmt: skip
    scope = f"{day}/{keys.region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{keys.secret}".encode()
    for part in (day, keys.region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return {
        "x-amz-date": stamp,
        "x-amz-content-sha256": EMPTY,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }


def fetch_folder(store: Store, prefix: str, folder: Path) -> int:
    """Copy every file below the prefix to the folder; returns their number. Raises StoreError."""
    below = prefix.strip("/") + "/" if prefix.strip("/") else ""
    count = 0
    for key, size in store.files(below):
        name = key[len(below) :]
        if not name or name.endswith("/"):
            continue  # an object that stands for a folder
        parts = name.split("/")
        if not key.startswith(below) or "" in parts or ".." in parts or "\\" in name:
            raise StoreError(f"{key!r} is no name for a file below {below!r}.")
        store.copy(key, size, folder.joinpath(*parts))
        count += 1
    if count == 0:
        raise StoreError(f"There is no file below {below!r}.")
    return count


@dataclass(frozen=True, slots=True)
class _Page:
    files: list[tuple[str, int]]
    next: str


def _page(content: bytes) -> _Page:
    try:
        root = ET.fromstring(content)  # noqa: S314  # expat 2.4.1 and newer bounds expansion
        space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
        files = [
            (row.findtext(f"{space}Key") or "", int(row.findtext(f"{space}Size") or -1))
            for row in root.iter(f"{space}Contents")
        ]
    except (ET.ParseError, ValueError) as error:
        raise StoreError(f"The list of files cannot be read: {error}.") from error
    if any(not key or size < 0 for key, size in files):
        raise StoreError("The list of files names one without a key or a size.")
    more = root.findtext(f"{space}IsTruncated") == "true"
    return _Page(files, (root.findtext(f"{space}NextContinuationToken") or "") if more else "")
