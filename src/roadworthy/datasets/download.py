"""Getting the official archives: downloaded with resume, summed, every member checked, then renamed into place."""

import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, final
from urllib.parse import urlsplit

from roadworthy.core.errors import DataError, InputError, UnknownNameError

OnBytes = Callable[[int, int | None], object]
"""Called with the bytes done and, where the server says, the total."""

_CHUNK = 1 << 20
_TIMEOUT = 60.0


@final
@dataclass(frozen=True)
class Archive:
    """A tar.gz that holds one `folder`; that folder is whole if the `files` are in it."""

    url: str
    md5: str
    folder: str
    files: tuple[str, ...] = ()


ARCHIVES = {
    "cifar10": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        "cifar-10-batches-bin",
        ("batches.meta.txt", "test_batch.bin", *(f"data_batch_{k}.bin" for k in range(1, 6))),
    ),
    "food101": Archive(
        "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
        "85eeb15f3717b99a5da872d97d918f87",
        "food-101",
        ("meta/classes.txt", "meta/train.txt", "meta/test.txt"),
    ),
}


def fetch(
    name: str, root: Path | str, url: str | None = None, md5: str | None = None, on_bytes: OnBytes | None = None
) -> Path:
    """The folder of the dataset `name` under `root`, downloaded if it is not there.

    An interrupted download goes on where it stopped. `url` names a mirror; `md5` another archive's sum.
    """
    if name not in ARCHIVES:
        raise UnknownNameError(f"no archive {name!r}: there are {', '.join(sorted(ARCHIVES))}")
    official = ARCHIVES[name]
    archive = replace(official, url=url or official.url, md5=md5 or official.md5)
    folder = Path(root).expanduser() / archive.folder
    if folder.exists():
        _check_whole(folder, archive)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.parent / f"{name}.tar.gz.part"
    download(archive.url, part, on_bytes or _silent)
    _check_sum(part, archive)
    unpack(part, folder)
    part.unlink()
    return folder


def download(url: str, part: Path, on_bytes: OnBytes) -> None:
    """Bring `part` to the length that the server says; what is there already is not asked for again."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"url {url!r}: only http and https are fetched")
    done = part.stat().st_size if part.exists() else 0
    response = _open(url, done)
    if response is None:  # nothing beyond what is there
        return
    with response:
        if response.status != 206:  # the server ignored the range and starts from zero
            done = 0
        total = _total(response, done)
        with part.open("ab" if done else "wb") as file:
            on_bytes(done, total)
            for chunk in _chunks(response, url):
                file.write(chunk)
                done += len(chunk)
                on_bytes(done, total)
    if total is not None and done < total:
        raise _broken(url, f"the connection ended after {done} of {total} bytes")


def unpack(part: Path, folder: Path) -> None:
    """Unpack into a sibling of `folder` and rename, once every member is known to be a plain file or folder inside."""
    try:
        with tarfile.open(part, "r:gz") as tar:
            members = tar.getmembers()
            if not members:
                raise tarfile.ReadError("it is empty")
            for member in members:
                _check_member(member, folder.name)
            with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
                for member in members:
                    _write_member(tar, member, Path(temporary))
                os.rename(Path(temporary) / folder.name, folder)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{part} is no whole tar.gz archive ({error}): delete it and run again") from error


def _silent(done: int, total: int | None) -> None:
    pass


def _check_whole(folder: Path, archive: Archive) -> None:
    missing = next((file for file in archive.files if not (folder / file).is_file()), None)
    if missing:
        raise DataError(f"{folder} is there but lacks {missing}: move the folder away and run again to get all of it")


def _opener() -> urllib.request.OpenerDirector:
    """Speaks http and https only, after redirects too: no file:, ftp: or data:."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _open(url: str, done: int) -> Any:
    """The response from byte `done` on, or None if there is none left."""
    headers = {"User-Agent": "roadworthy", **({"Range": f"bytes={done}-"} if done else {})}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme was checked
    try:
        return _opener().open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and done:
            return None
        raise _broken(url, f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _broken(url, str(error)) from error


def _total(response: Any, done: int) -> int | None:
    length = response.headers.get("Content-Length")
    return done + int(length) if length else None


def _chunks(response: Any, url: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _broken(url, str(error) or type(error).__name__) from error
        if not chunk:
            return
        yield chunk


def _broken(url: str, reason: str) -> DataError:
    return DataError(f"{url}: {reason}. What arrived is kept: run again to resume, or name a mirror with url=")


def _check_sum(part: Path, archive: Archive) -> None:
    with part.open("rb") as file:
        md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if md5 != archive.md5:
        part.unlink()
        raise DataError(
            f"{archive.url}: the md5 sum is {md5}, {archive.md5} expected; the download was deleted: run again"
        )


def _check_member(member: tarfile.TarInfo, folder: str) -> None:
    parts = PurePosixPath(member.name).parts
    if not (member.isdir() or (member.isreg() and parts != (folder,))):
        reason = "is no regular file or folder"
    elif parts[:1] != (folder,) or ".." in parts or set(member.name) & set("\\:"):
        reason = f"does not lie inside {folder}/"
    else:
        return
    raise DataError(f"archive member {member.name!r} {reason}: nothing was unpacked; get the archive elsewhere")


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    target = root / member.name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
