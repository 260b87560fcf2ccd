"""Archives are downloaded completely or not at all, and unpacking never writes outside their folder."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from roadworthy.core.errors import DataError, InputError, UnknownNameError
from roadworthy.datasets import download as downloading
from roadworthy.datasets.download import ARCHIVES, Archive, fetch

FOLDER = "cifar-10-batches-bin"
CONTENTS = {name: f"content of {name}".encode() * 50 for name in ARCHIVES["cifar10"].files}


def tar_of(*members: tarfile.TarInfo, files: dict[str, bytes] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in (files or {}).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def md5_of(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


GOOD = tar_of(special(FOLDER, tarfile.DIRTYPE), files={f"{FOLDER}/{name}": text for name, text in CONTENTS.items()})
MD5 = md5_of(GOOD)
CORRUPT = GOOD[:30] + bytes(20) + GOOD[50:]


@dataclass
class Server:
    """A loopback server for one file, which records the requested ranges."""

    content: bytes = GOOD
    supports_ranges: bool = True
    stops_after: int | None = None
    sends_length: bool = True
    status: int = 200
    location: str = ""
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        requested = handler.headers.get("Range")
        self.ranges.append(requested)
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested and self.supports_ranges else 0
        if self.status != 200 or start >= len(self.content):
            handler.send_response(self.status if self.status != 200 else 416)
            handler.send_header("Content-Length", "0")
            if self.location:
                handler.send_header("Location", self.location)
            handler.end_headers()
            return
        body = self.content[start:]
        handler.send_response(206 if start else 200)
        if self.sends_length:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: self.stops_after])  # then the connection closes


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}/cifar.tar.gz"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http.shutdown()
        thread.join()


def unpacked(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / FOLDER).iterdir()}


def names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_a_complete_download_is_unpacked_and_leaves_nothing_else(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    folder = fetch(
        "cifar10", tmp_path / "new", server.url, MD5, on_bytes=lambda done, total: seen.append((done, total))
    )
    assert folder == tmp_path / "new" / FOLDER
    assert unpacked(tmp_path / "new") == CONTENTS
    assert names(tmp_path / "new") == {FOLDER}
    assert server.ranges == [None]
    assert seen[0] == (0, len(GOOD))
    assert seen[-1] == (len(GOOD), len(GOOD))


def test_an_interrupted_download_resumes_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.stops_after = 100
    with pytest.raises(DataError, match=rf"{server.url}.*100 of {len(GOOD)} bytes.*run again to resume"):
        fetch("cifar10", tmp_path, server.url, MD5)
    assert (tmp_path / "cifar10.tar.gz.part").read_bytes() == GOOD[:100]
    server.stops_after = None
    seen: list[tuple[int, int | None]] = []
    fetch("cifar10", tmp_path, server.url, MD5, on_bytes=lambda done, total: seen.append((done, total)))
    assert server.ranges == [None, "bytes=100-"]
    assert seen[0] == (100, len(GOOD))
    assert unpacked(tmp_path) == CONTENTS


def test_a_download_restarts_if_the_server_ignores_ranges(server: Server, tmp_path: Path) -> None:
    server.supports_ranges = False
    (tmp_path / "cifar10.tar.gz.part").write_bytes(GOOD[:100])
    fetch("cifar10", tmp_path, server.url, MD5)
    assert server.ranges == ["bytes=100-"]
    assert unpacked(tmp_path) == CONTENTS


def test_a_partial_file_that_is_already_complete_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "cifar10.tar.gz.part").write_bytes(GOOD)
    fetch("cifar10", tmp_path, server.url, MD5)  # the server answers 416: there is nothing after the last byte
    assert server.ranges == [f"bytes={len(GOOD)}-"]
    assert unpacked(tmp_path) == CONTENTS


def test_without_a_content_length_no_total_is_reported(server: Server, tmp_path: Path) -> None:
    server.sends_length = False
    totals: set[int | None] = set()
    fetch("cifar10", tmp_path, server.url, MD5, on_bytes=lambda _, total: totals.add(total))
    assert totals == {None}
    assert unpacked(tmp_path) == CONTENTS


def test_a_wrong_checksum_deletes_the_download_and_names_both_checksums(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{MD5}.*{ARCHIVES['cifar10'].md5}"):
        fetch("cifar10", tmp_path, server.url)  # a mirror must hold the official archive
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    "bad",
    [
        tar_of(files={f"{FOLDER}/a": b"a", f"{FOLDER}/../../evil": b"evil"}),
        tar_of(files={f"{FOLDER}/a": b"a", "/tmp/evil": b"evil"}),
        tar_of(files={f"{FOLDER}/a": b"a", "elsewhere/evil": b"evil"}),
        tar_of(files={f"{FOLDER}/a": b"a", f"{FOLDER}/C:evil": b"evil"}),
        tar_of(special(f"{FOLDER}/evil", tarfile.SYMTYPE, "/etc"), files={f"{FOLDER}/a": b"a"}),
        tar_of(special(f"{FOLDER}/evil", tarfile.LNKTYPE, f"{FOLDER}/a"), files={f"{FOLDER}/a": b"a"}),
        tar_of(special(f"{FOLDER}/evil", tarfile.FIFOTYPE), files={f"{FOLDER}/a": b"a"}),
        tar_of(special(f"{FOLDER}/evil", tarfile.CHRTYPE), files={f"{FOLDER}/a": b"a"}),
    ],
    ids=["parent", "absolute", "elsewhere", "drive", "symlink", "hardlink", "fifo", "device"],
)
def test_an_archive_with_a_dangerous_member_is_refused_and_leaves_nothing_behind(
    server: Server, tmp_path: Path, bad: bytes
) -> None:
    server.content = bad
    with pytest.raises(DataError, match=r"archive member '.*evil'.*nothing was unpacked"):
        fetch("cifar10", tmp_path / "root", server.url, md5_of(bad))
    assert names(tmp_path) == {"root"}
    assert names(tmp_path / "root") == {"cifar10.tar.gz.part"}


def test_an_archive_that_unpacks_to_too_many_bytes_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = sum(map(len, CONTENTS.values()))
    monkeypatch.setattr(downloading, "MAX_UNPACKED", total - 1)
    with pytest.raises(DataError, match=rf"more than {total - 1} bytes.*nothing was unpacked"):
        fetch("cifar10", tmp_path, server.url, MD5)
    assert names(tmp_path) == {"cifar10.tar.gz.part"}
    monkeypatch.setattr(downloading, "MAX_UNPACKED", total)
    fetch("cifar10", tmp_path, server.url, MD5)
    assert unpacked(tmp_path) == CONTENTS


def test_unpacked_files_have_no_special_permissions(server: Server, tmp_path: Path) -> None:
    member = tarfile.TarInfo(f"{FOLDER}/tool")
    member.mode = 0o6777  # setuid, setgid and writable by everybody
    server.content = tar_of(member)
    fetch("cifar10", tmp_path, server.url, md5_of(server.content))
    assert (tmp_path / FOLDER / "tool").stat().st_mode & 0o7022 == 0


@pytest.mark.parametrize("bad", [b"no archive", GOOD[:-40], CORRUPT, tar_of()], ids=["text", "cut", "corrupt", "empty"])
def test_a_damaged_archive_is_an_error(server: Server, tmp_path: Path, bad: bytes) -> None:
    server.content = bad
    with pytest.raises(DataError, match=r"not a complete tar\.gz"):
        fetch("cifar10", tmp_path, server.url, md5_of(bad))
    assert names(tmp_path) == {"cifar10.tar.gz.part"}


def test_a_crash_while_unpacking_leaves_no_partial_folder(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tarfile.copyfileobj", full)
        with pytest.raises(OSError, match="no space left"):
            fetch("cifar10", tmp_path, server.url, MD5)
    assert names(tmp_path) == {"cifar10.tar.gz.part"}
    fetch("cifar10", tmp_path, server.url, MD5)
    assert unpacked(tmp_path) == CONTENTS


def test_a_complete_folder_is_used_without_network_access(server: Server, tmp_path: Path) -> None:
    fetch("cifar10", tmp_path, server.url, MD5)
    (tmp_path / FOLDER / "mine.txt").write_text("mine")
    assert fetch("cifar10", tmp_path, server.url, MD5) == tmp_path / FOLDER
    assert len(server.ranges) == 1
    assert (tmp_path / FOLDER / "mine.txt").read_text() == "mine"


def test_a_folder_that_lacks_a_file_is_named_and_not_touched(server: Server, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    with pytest.raises(DataError, match=rf"{FOLDER} exists but lacks batches\.meta\.txt: move the folder away"):
        fetch("cifar10", tmp_path, server.url, MD5)
    assert server.ranges == []


def test_an_http_error_names_the_url_and_the_status(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(DataError, match=rf"{server.url}: the server answered 404 Not Found.*run again"):
        fetch("cifar10", tmp_path, server.url, MD5)


def test_an_unreachable_server_is_named_and_the_partial_download_kept(server: Server, tmp_path: Path) -> None:
    (tmp_path / "cifar10.tar.gz.part").write_bytes(GOOD[:100])
    url = "http://127.0.0.1:1/cifar.tar.gz"  # nothing listens on port 1
    with pytest.raises(DataError, match=rf"{url}.*refused.*run again to resume"):
        fetch("cifar10", tmp_path, url, MD5)
    assert (tmp_path / "cifar10.tar.gz.part").read_bytes() == GOOD[:100]


def test_only_http_is_supported_also_after_redirects(server: Server, tmp_path: Path) -> None:
    archive = tmp_path / "local.tar.gz"
    archive.write_bytes(GOOD)
    for url in (archive.as_uri(), "ftp://127.0.0.1/x", str(archive)):
        with pytest.raises(InputError, match="only http and https"):
            fetch("cifar10", tmp_path, url, MD5)
    server.status, server.location = 302, "ftp://127.0.0.1:1/cifar.tar.gz"
    with pytest.raises(DataError, match="unknown url type: ftp"):
        fetch("cifar10", tmp_path, server.url, MD5)


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'cifar100'.*cifar10, food101"):
        fetch("cifar100", tmp_path)


def test_the_official_archives_are_the_published_ones() -> None:
    # https://www.cs.toronto.edu/~kriz/cifar.html and torchvision's Food101
    cifar, food = ARCHIVES["cifar10"], ARCHIVES["food101"]
    assert isinstance(cifar, Archive)
    assert (cifar.md5, cifar.folder) == ("c32a1d4ab5d03f1284b67883e8d87530", "cifar-10-batches-bin")
    assert (food.md5, food.folder) == ("85eeb15f3717b99a5da872d97d918f87", "food-101")
