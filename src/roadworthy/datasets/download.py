"""Downloads of the official archives: resumable, verified by checksum, unpacked safely, renamed into place."""

import errno
import gzip
import hashlib
import http.client
import os
import re
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

from roadworthy.core.errors import DataError, InputError, RoadworthyError, UnknownNameError
from roadworthy.core.files import unwritable

OnBytes = Callable[[int, int | None], object]
"""Called with the number of bytes received and the total, or None if the server does not say."""

_CHUNK = 1 << 20
_TIMEOUT = 60.0

MAX_UNPACKED = 16 * 2**30
"""In bytes, of a download and of what it unpacks to; Food-101, the largest archive, has 5 GB."""

_MAX_READ = 64 * 2**20
"""Bytes that unpacking reads at once: more than any header or block of an honest archive."""


@final
@dataclass(frozen=True)
class Archive:
    """A tar.gz that holds one `folder`, which is complete if it contains the `files`."""

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
    """The folder of the dataset `name` under `root`, downloaded if missing.

    An interrupted download is resumed. `url` names a mirror, `md5` the checksum of another archive.
    """
    if name not in ARCHIVES:
        raise UnknownNameError(f"unknown archive {name!r}: choose one of {', '.join(sorted(ARCHIVES))}")
    official = ARCHIVES[name]
    archive = replace(official, url=url or official.url, md5=md5 or official.md5)
    _check_arguments(archive)
    folder = Path(root).expanduser() / archive.folder
    try:
        if folder.exists():
            _check_whole(folder, archive)
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.parent / f"{name}.tar.gz.part"
        if os.path.lexists(part) and not part.is_file():
            raise DataError(f"{part} is not a file: move it away and run again")
        download(archive.url, part, on_bytes or _silent)
        _check_md5(part, archive)
        unpack(part, folder)
        part.unlink()
    except RoadworthyError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(
            f"{name} cannot be put into {root}: {unwritable(folder, error)}; run again to resume"
        ) from error
    return folder


def _check_arguments(archive: Archive) -> None:
    try:
        parts = urlsplit(archive.url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError) as error:
        raise InputError(f"url {archive.url!r} is not valid ({error}): give an http or https address") from error
    if not valid:
        raise InputError(f"url {archive.url!r}: only http and https are supported")
    if not re.fullmatch("[0-9a-f]{32}", str(archive.md5)):
        raise InputError(f"md5 {archive.md5!r}: give the 32 hexadecimal digits of the archive's checksum")


def download(url: str, part: Path, on_bytes: OnBytes) -> None:
    """Download `url` to `part`, resuming after the bytes it already holds."""
    done = part.stat().st_size if part.exists() else 0
    response = _open(url, done)
    if response is None:  # already complete
        return
    with response:
        if response.status != 206 or not _continues(response, done):  # the server ignored the range: start over
            done = 0
        total = _total(response, done)
        with part.open("ab" if done else "wb") as file:
            on_bytes(done, total)
            for chunk in _chunks(response, url):
                file.write(chunk)
                done += len(chunk)
                if done > MAX_UNPACKED:
                    raise DataError(f"{url} sends more than {MAX_UNPACKED:,} bytes: name another mirror with url=")
                on_bytes(done, total)
    if total is not None and done < total:
        raise _failure(url, f"the connection ended after {done} of {total} bytes")


def unpack(part: Path, folder: Path) -> None:
    """Unpack into a temporary sibling of `folder`, then rename. Only plain files and folders inside it are accepted."""
    total = 0

    def checked(member: tarfile.TarInfo, destination: str) -> tarfile.TarInfo:
        nonlocal total
        total += member.size
        _check_member(member, folder.name, total)
        return tarfile.data_filter(member, destination)

    try:
        with (
            _Limited(part) as content,
            tarfile.open(fileobj=content, mode="r:") as tar,
            tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary,
        ):
            tar.extractall(temporary, filter=checked)  # noqa: S202  every member is checked
            if not (Path(temporary) / folder.name).exists():
                raise tarfile.ReadError("it is empty")
            os.rename(Path(temporary) / folder.name, folder)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{part} is not a complete tar.gz archive ({error}): delete it and run again") from error
    except (NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        raise DataError(f"{part}: two members of the archive have one name ({error}): get it elsewhere") from error
    except RecursionError as error:
        raise DataError(f"{part}: the path of a member is too long: get the archive elsewhere") from error
    except (UnicodeError, ValueError, OverflowError) as error:
        raise DataError(f"{part} is not a valid archive ({error}): delete it and run again") from error
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise DataError(f"{part}: the name of a member is too long ({error.strerror}): get it elsewhere") from error


class _Limited(gzip.GzipFile):
    """What tarfile reads from: the size in a header is not trusted before it is read."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _MAX_READ:
            raise DataError(f"the archive has a header of {size:,} bytes: nothing was unpacked; get it elsewhere")
        return super().read(size)


def _silent(done: int, total: int | None) -> None:
    pass


def _check_whole(folder: Path, archive: Archive) -> None:
    missing = next((file for file in archive.files if not (folder / file).is_file()), None)
    if missing:
        raise DataError(f"{folder} exists but lacks {missing}: move the folder away and run again to download it")


def _opener() -> urllib.request.OpenerDirector:
    """Supports only http and https, also after redirects: no file:, ftp: or data:."""
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
    """The response from byte `done` on, or None if there are no more bytes."""
    headers = {"User-Agent": "roadworthy", **({"Range": f"bytes={done}-"} if done else {})}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme was checked
    try:
        return _opener().open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and done:
            return None
        raise _failure(url, f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: addresses and headers
        raise _failure(url, str(error)) from error


def _continues(response: Any, done: int) -> bool:
    """The answer begins where we asked it to; some servers answer another range."""
    given = re.match(r"bytes (\d{1,18})-", str(response.headers.get("Content-Range") or ""))
    return given is None or int(given[1]) == done


def _total(response: Any, done: int) -> int | None:
    length = str(response.headers.get("Content-Length") or "")
    return done + int(length) if re.fullmatch("[0-9]{1,18}", length) else None


def _chunks(response: Any, url: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _failure(url, str(error) or type(error).__name__) from error
        if not chunk:
            return
        yield chunk


def _failure(url: str, reason: str) -> DataError:
    return DataError(f"{url}: {reason}. The partial download is kept: run again to resume, or name a mirror with url=")


def _check_md5(part: Path, archive: Archive) -> None:
    with part.open("rb") as file:
        md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if md5 != archive.md5:
        part.unlink()
        raise DataError(f"{archive.url}: md5 is {md5}, expected {archive.md5}; the download was deleted: run again")


def _check_member(member: tarfile.TarInfo, folder: str, total: int) -> None:
    """Stricter than tarfile's data filter: no links at all, nothing outside `folder`, no names special on Windows."""
    parts = PurePosixPath(member.name).parts
    if not (member.isdir() or (member.isreg() and parts != (folder,))):
        reason = "is not a regular file or folder"
    elif parts[:1] != (folder,) or ".." in parts or set(member.name) & set("\\:"):
        reason = f"is not inside {folder}/"
    elif total > MAX_UNPACKED:
        reason = f"makes the archive unpack to more than {MAX_UNPACKED} bytes"
    else:
        return
    raise DataError(f"archive member {member.name!r} {reason}: nothing was unpacked; get the archive elsewhere")
