"""Files: written completely or not at all, and read only where they are regular files."""

import errno
import os
import secrets
import stat
from pathlib import Path

from roadworthy.core.errors import OutputError

_CURES = {
    errno.ENOSPC: "free some space, or choose another disk",
    errno.EDQUOT: "free some space, or choose another disk",
    errno.EFBIG: "choose a file system that takes larger files",
    errno.EROFS: "choose a folder that can be written",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.ENOTDIR: "a part of the path is a file; choose another folder",
    errno.EEXIST: "a part of the path is a file; choose another folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "a part of the path is a symbolic link to itself; choose another folder",
}


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file, flush it to disk, then rename: a crash leaves either the old or the new file.

    A symbolic link is followed. A device, a pipe or a folder is not replaced. Several threads may write at once.
    """
    path = check_output(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # "x" never follows a link; permissions are those that open() gives, without a look at the umask of all threads.
        file = temporary.open("xb")
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise unwritable(path, error) from error
        raise


def check_output(path: Path | str) -> Path:
    """Where `path` leads, if a file can be created or replaced there: for use before long work."""
    target, mode = Path(path), None
    try:
        target = Path(os.path.realpath(path, strict=False))
        mode = target.lstat().st_mode
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise unwritable(target, error) from error
    if mode is not None and not stat.S_ISREG(mode):
        raise OutputError(f"{target} is {_kind(mode)}, which is not replaced: give the name of a file")
    folder = next((parent for parent in target.parents if os.path.lexists(parent)), target)
    if not folder.is_dir():
        raise OutputError(f"{target} cannot be written: {folder} is not a folder; choose another one")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{target} cannot be written: {folder} is read-only; choose a folder that you may write to")
    return target


def unwritable(path: Path, error: OSError | ValueError) -> OutputError:
    """What kept `path` from being written, and the cure."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    number = getattr(error, "errno", None)
    problem = OutputError(f"{path} cannot be written ({reason}): {_CURES.get(number or 0, 'choose another place')}")
    problem.errno = number
    return problem


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The content of a regular file. OSError for anything else: opening a pipe could wait forever.

    `most`: the largest size in bytes that is read.
    """
    # O_NONBLOCK: a pipe is opened at once, and found out by its type.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"it is {_kind(status.st_mode)}, not a file")
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, more than {most:,}")
        return file.read()


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFLNK: "a symbolic link",
    }
    return kinds.get(stat.S_IFMT(mode), "not a regular file")
