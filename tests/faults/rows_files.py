"""Files: image folders, outputs, downloads and archives, plans as files, maps and weights."""

import errno
import gzip
import hashlib
import http.server
import io
import os
import stat
import tarfile
import threading
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

import roadworthy as rw
from faults.table import Row, UsageError, command
from projects import edited
from roadworthy.core.errors import (
    DataError,
    InputError,
    OutputError,
    PlanError,
    RangeError,
    ShapeError,
    StoreError,
    UnknownNameError,
)
from roadworthy.core.files import write_atomically
from roadworthy.datasets import download
from roadworthy.datasets.folder import ImageFolder

# ── image folders ────────────────────────────────────────────────────────────────────────────────────────────────────


def opened(**options):
    def do(folder):
        data = ImageFolder(**{"root": folder / "images", **options})
        return list(data.batches(4))

    return do


def in_class(make, name="999.png"):
    """Something beside the images of the first class."""

    def given(folder):
        place = sorted((folder / "images").iterdir())[0] / name
        make(place)

    return given


def png(**changes):
    buffer = io.BytesIO()
    Image.new("RGB", (12, 12)).save(buffer, "PNG")
    return buffer.getvalue()


def jpeg():
    buffer = io.BytesIO()
    Image.new("RGB", (12, 12)).save(buffer, "JPEG")
    return buffer.getvalue()


IMAGES = [
    Row("folder: a pipe among the images", opened(), DataError, "pipe", in_class(os.mkfifo)),
    Row("folder: a link to itself", opened(), DataError, "remove it", in_class(lambda path: path.symlink_to(path))),
    Row("folder: a link that leads out", opened(), DataError, "copy the images", in_class(lambda path: path.symlink_to("/etc/hostname"))),
    Row("folder: a link to a device", opened(), DataError, "copy the images", in_class(lambda path: path.symlink_to("/dev/zero"))),
    Row("folder: a link that leads nowhere", opened(), DataError, "missing", in_class(lambda path: path.symlink_to("gone.png"))),
    Row("folder: an empty image", opened(), DataError, "replace or remove", in_class(lambda path: path.write_bytes(b""))),
    Row("folder: a text named .png", opened(), DataError, "replace or remove", in_class(lambda path: path.write_text("no image"))),
    Row("folder: a PNG that is cut", opened(), DataError, "replace or remove", in_class(lambda path: path.write_bytes(png()[:50]))),
    Row("folder: a JPEG that is cut", opened(), DataError, "replace or remove", in_class(lambda path: path.write_bytes(jpeg()[:100]), "9.jpg")),
    Row("folder: a PNG with a changed checksum", opened(), DataError, "replace or remove",
        in_class(lambda path: path.write_bytes(png()[:30] + b"\0\0\0\0" + png()[34:]))),
    Row("folder: a GIF named .png", opened(), DataError, "replace or remove",
        in_class(lambda path: Image.new("RGB", (12, 12)).save(path, "GIF"))),
    Row("folder: an image of another size", opened(), ShapeError, "crop=", in_class(lambda path: Image.new("RGB", (9, 9)).save(path))),
    Row("folder: 16 bits per channel", opened(), DataError, "8-bit", in_class(lambda path: Image.new("I;16", (12, 12)).save(path))),
    Row("folder: a stray image", opened(), DataError, "move it", lambda folder: Image.new("RGB", (9, 9)).save(folder / "images" / "a.png")),
    Row("folder: a class without images", opened(), DataError, "leave it out", lambda folder: (folder / "images" / "zebra").mkdir()),
    Row("folder: a class folder that leads out", opened(), DataError, "copy the images",
        lambda folder: ((folder / "o").mkdir(), (folder / "images" / "o").symlink_to(folder / "o"))),
    *(Row(f"folder: root={root!r}", opened(root=root), InputError, "folder of the images") for root in (None, 7, b"images", "a\0b", ["images"], "")),
    *(Row(f"folder: root={root!r}", opened(root=root), DataError, "folder") for root in ("nowhere", "/dev/null", "x" * 300)),
    *(Row(f"folder: resize={side!r}", opened(resize=side), InputError, "whole number") for side in ("8", 2.5, True, [8])),
    *(Row(f"folder: resize={side!r}", opened(resize=side), RangeError, "at least 1") for side in (0, -3, 1 << 30)),
    *(Row(f"folder: crop={side!r}", opened(crop=side), InputError, "whole number") for side in ("8", 2.5, False, (8, 8))),
    *(Row(f"folder: crop={side!r}", opened(crop=side), RangeError, "at least 1") for side in (0, -1)),
    Row("folder: crop=99", opened(crop=99), ShapeError, "give resize=99"),
    *(Row(f"folder: classes={names!r}", opened(classes=names), InputError, "subfolders") for names in ("cat", 7, (1, 2), ("",), {"a": 1})),
    Row("folder: a class twice", opened(classes=("1 north-west", "1 north-west")), InputError, "remove one"),
    Row("folder: a class that is missing", opened(classes=("zebra",)), DataError, "subfolders"),
    Row("folder: a class above the root", opened(classes=("..",)), DataError, "leads out"),
    Row("folder: a class with an absolute path", opened(classes=("/etc",)), DataError, "leads out"),
]  # fmt: skip

# ── outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def page(*path):
    return command("report", "run", "-o", Path(*path))


def failing(number):
    """Every write fails with this error."""

    def do(folder):
        with mock.patch("roadworthy.core.files.os.fsync", side_effect=OSError(number, os.strerror(number))):
            write_atomically(folder / "page.html", b"content")

    return do


def device(folder: Path) -> None:
    """A device of the test's own, and a link to it: a failing test must not replace one of the machine's."""
    try:
        os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        os.mkfifo(folder / "device")
    (folder / "link").symlink_to("device")


OUTPUTS = [
    Row("report: a device", page("device"), OutputError, "name of a file", device),
    Row("report: a device behind a link", page("link"), OutputError, "name of a file", device),
    Row("report: a pipe", page("pipe"), OutputError, "a pipe", lambda folder: os.mkfifo(folder / "pipe")),
    Row("report: a folder", page("images"), OutputError, "name of a file"),
    Row("report: the current folder", page("."), OutputError, "name of a file"),
    Row("report: below a file", page("plan.toml/page.html"), OutputError, "choose another"),
    Row("report: a name that is too long", page("x" * 300), OutputError, "shorter"),
    Row("report: a link to itself", page("loop"), OutputError, "symbolic link", lambda folder: (folder / "loop").symlink_to("loop")),
    Row("report: below a link to itself", page("loop/page.html"), OutputError, "choose another",
        lambda folder: (folder / "loop").symlink_to("loop")),
    Row("report: in /proc", page("/proc/nowhere/page.html"), OutputError, "choose"),
    Row("export: a folder", command("export", "run", "t.csv"), OutputError, "name of a file", lambda folder: (folder / "t.csv").mkdir()),
    Row("export: a pipe", command("export", "run", "p.csv"), OutputError, "a pipe", lambda folder: os.mkfifo(folder / "p.csv")),
    Row("export: no suffix", command("export", "run", "table"), InputError, r"\.csv"),
    Row("export: an unknown suffix", command("export", "run", "table.xlsx"), InputError, r"\.csv"),
    Row("export: below a file", command("export", "run", "plan.toml/t.csv"), OutputError, "choose another"),
    Row("diff: a device", command("diff", "run", "run", "--out", "d.csv"), UsageError, "name of a file",
        lambda folder: (folder / "d.csv").symlink_to("/dev/zero")),
    Row("diff: an unknown suffix", command("diff", "run", "run", "--out", "d.txt"), UsageError, r"\.csv"),
    Row("imputers compare: below a file", command("imputers", "compare", "plan.toml", "--out", "plan.toml"), OutputError, "choose another"),
    Row("figures: below a file", command("figures", "run", "--out", "plan.toml"), OutputError, "choose another"),
    Row("figures: the folder is a device", command("figures", "run", "--out", "/dev/null"), OutputError, "choose another"),
    *(
        Row(f"an output: {os.strerror(number)}", failing(number), OutputError, cure)
        for number, cure in (
            (errno.ENOSPC, "free some space"), (errno.EDQUOT, "free some space"), (errno.EROFS, "can be written"),
            (errno.EFBIG, "larger files"), (errno.EACCES, "you may write"), (errno.EPERM, "you may write"), (errno.EIO, "another place"),
        )
    ),
]  # fmt: skip

# ── downloads ────────────────────────────────────────────────────────────────────────────────────────────────────────

NAME = download.ARCHIVES["cifar10"].folder
PART = ("data", "cifar10.tar.gz.part")


class Server:
    """Answers one request on the loopback."""

    def __init__(self, content=b"", status=200, **headers):
        self.content, self.status, self.headers = content, status, headers

    def __enter__(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response_only(server.status)
                for name, value in server.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(server.content)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return f"http://127.0.0.1:{self.http.server_port}/archive.tar.gz"

    def __exit__(self, *_):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def fetched(content=b"", md5=None, status=200, **headers):
    def do(folder):
        with Server(content, status, **headers) as url, mock.patch.dict(os.environ, no_proxy="127.0.0.1"):
            return download.fetch("cifar10", folder / "data", url, md5 or hashlib.md5(content).hexdigest())

    return do


def archive(*members, files=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    return buffer.getvalue()


def member(name, kind=tarfile.REGTYPE, **options):
    info = tarfile.TarInfo(f"{NAME}/{name}")
    info.type = kind
    for key, value in options.items():
        setattr(info, key, value)
    return info


def huge_header():
    """A header that claims to be a path name of 1 GB."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    return gzip.compress(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024))


ARCHIVES = {
    "text": (b"no archive", "delete it"),
    "empty": (archive(), "delete it"),
    "cut": (archive(files=[(f"{NAME}/a", bytes(9000))])[:-30], "delete it"),
    "not zipped": (gzip.decompress(archive(files=[(f"{NAME}/a", b"a")])), "delete it"),
    "zipped text": (gzip.compress(b"no archive" * 100), "delete it"),
    "a parent": (archive(files=[(f"{NAME}/../evil", b"e")]), "elsewhere"),
    "an absolute name": (archive(files=[("/evil", b"e")]), "elsewhere"),
    "another folder": (archive(files=[("evil/a", b"e")]), "elsewhere"),
    "a drive": (archive(files=[(f"{NAME}/c:evil", b"e")]), "elsewhere"),
    "a backslash": (archive(files=[(f"{NAME}/..\\evil", b"e")]), "elsewhere"),
    "a symbolic link": (archive(member("l", tarfile.SYMTYPE, linkname="/etc")), "elsewhere"),
    "a hard link": (archive(member("l", tarfile.LNKTYPE, linkname=f"{NAME}/a")), "elsewhere"),
    "a pipe": (archive(member("p", tarfile.FIFOTYPE)), "elsewhere"),
    "a device": (archive(member("d", tarfile.CHRTYPE)), "elsewhere"),
    "a file in the place of the folder": (archive(files=[(NAME, b"e")]), "elsewhere"),
    "a file and a folder of one name": (archive(files=[(f"{NAME}/a", b"a"), (f"{NAME}/a/b", b"b")]), "one name"),
    "a folder and a file of one name": (
        archive(files=[(f"{NAME}/a/b", b"b"), (f"{NAME}/a", b"a")]),
        "one name|elsewhere",
    ),
    "a name that is too long": (archive(files=[(f"{NAME}/{'x' * 300}", b"a")]), "too long"),
    "a path that is too long": (archive(files=[(NAME + "/x" * 3000, b"a")]), "too long"),
    "a header of 1 GB": (huge_header(), "elsewhere"),
}


def limited(folder):
    """More bytes than are allowed, in a small archive."""
    with mock.patch.object(download, "MAX_UNPACKED", 10_000):
        return fetched(archive(files=[(f"{NAME}/a", bytes(20_000))]))(folder)


def endless(folder):
    """A download that is longer than allowed, and does not say so."""
    with mock.patch.object(download, "MAX_UNPACKED", 10_000):
        return fetched(bytes(20_000))(folder)


GOOD = archive(files=[(f"{NAME}/a", b"a")])

DOWNLOADS = [
    *(
        Row(f"download: {what}", fetched(content), DataError, cure, may_write=PART)
        for what, (content, cure) in ARCHIVES.items()
    ),
    Row("download: unpacks to too much", limited, DataError, "elsewhere", may_write=PART),
    Row("download: sends too much", endless, DataError, "another mirror", may_write=PART),
    Row("download: another checksum", fetched(GOOD, md5="0" * 32), DataError, "run again", may_write=PART),
    *(Row(f"download: status {code}", fetched(b"", "0" * 32, code), DataError, "mirror", may_write=PART) for code in (403, 404, 500, 503)),
    Row("download: cut short", fetched(GOOD, Content_Length="99999"), DataError, "resume", may_write=PART),
    Row("download: a length that is a text", fetched(GOOD, "0" * 32, Content_Length="many"), DataError, "run again", may_write=PART),
    Row("download: a length below 0", fetched(GOOD, "0" * 32, Content_Length="-5"), DataError, "run again", may_write=PART),
    Row("download: a length of 5,000 digits", fetched(GOOD, "0" * 32, Content_Length="9" * 5000), DataError, "run again", may_write=PART),
    Row("download: two lengths", fetched(GOOD, "0" * 32, Content_Length="5, 6"), DataError, "run again", may_write=PART),
    Row("download: a broken chunk", fetched(b"zz\r\nxx", "0" * 32, Transfer_Encoding="chunked"), DataError, "resume|run again", may_write=PART),
    Row("download: a redirect to a file", fetched(status=302, Location="file:///etc/passwd"), DataError, "mirror", may_write=PART),
    Row("download: a redirect to ftp", fetched(status=302, Location="ftp://127.0.0.1/x"), DataError, "mirror", may_write=PART),
    Row("download: a redirect without an address", fetched(status=302), DataError, "mirror", may_write=PART),
    Row("download: a redirect to nonsense", fetched(status=302, Location="http://[::1"), DataError, "mirror", may_write=PART),
    Row("download: a header of 70,000 bytes", fetched(GOOD, X_Long="x" * 70_000), DataError, "mirror", may_write=PART),
    *(
        Row(f"download: url={url!r}", lambda folder, url=url: download.fetch("cifar10", folder / "data", url, "0" * 32), InputError, "http")
        for url in ("file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "/etc/passwd", "http://", "https:///x", "http://[::1", "http://h:99999/", 7)
    ),
    *(
        Row(f"download: url={url!r}", lambda folder, url=url: download.fetch("cifar10", folder / "data", url, "0" * 32), DataError, "mirror",
            may_write=PART)
        for url in ("http://127.0.0.1:1/x", "http://127.0.0.1:1/ space", "http://127.0.0.1:1/\r\nHost: evil", "http://127.0.0.1:1/ü")
    ),
    *(
        Row(f"download: md5={md5!r}", lambda folder, md5=md5: download.fetch("cifar10", folder / "data", None, md5), InputError, "32 hexadecimal")
        for md5 in ("0", "z" * 32, "0" * 33, 7, b"0" * 32)
    ),
    Row("download: an unknown name", lambda folder: download.fetch("cifar100", folder), UnknownNameError, "cifar10, food101"),
    Row("download: into a file", lambda folder: download.fetch("cifar10", folder / "plan.toml"), DataError, "choose another"),
    Row("download: into a link to itself", lambda folder: download.fetch("cifar10", folder / "loop"), DataError, "choose another",
        lambda folder: (folder / "loop").symlink_to("loop")),
    Row("download: a folder in the place of the partial file", lambda folder: download.fetch("cifar10", folder), DataError, "move it away",
        lambda folder: (folder / "cifar10.tar.gz.part").mkdir()),
    Row("download: a pipe in the place of the partial file", lambda folder: download.fetch("cifar10", folder), DataError, "move it away",
        lambda folder: os.mkfifo(folder / "cifar10.tar.gz.part")),
    Row("download: an incomplete folder", lambda folder: download.fetch("cifar10", folder), DataError, "move the folder away",
        lambda folder: (folder / NAME).mkdir()),
    Row("download: an unknown name on the command line", command("data", "download", "cifar100"), UsageError, "cifar10"),
    Row("download: into a file on the command line", command("data", "download", "cifar10", "--root", "plan.toml"), DataError, "choose another"),
]  # fmt: skip

# ── plans as files, and the files that they name ─────────────────────────────────────────────────────────────────────


def read(name):
    return lambda folder: rw.read_plan(folder / name)


def text(content):
    def given(folder):
        path = folder / "bad.toml"
        path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)

    return given


PLANS = [
    *(Row(f"read_plan: path={path!r}", lambda folder, path=path: rw.read_plan(path), PlanError, "TOML") for path in (None, 7, b"plan.toml", ["a"], "a\0b")),
    Row("read_plan: no such file", read("nowhere.toml"), PlanError, "copy one"),
    Row("read_plan: a folder", read("images"), PlanError, "copy one"),
    Row("read_plan: a pipe", read("pipe"), PlanError, "a pipe", lambda folder: os.mkfifo(folder / "pipe")),
    Row("read_plan: a device", lambda folder: rw.read_plan("/dev/zero"), PlanError, "a device"),
    Row("read_plan: a link to itself", read("loop"), PlanError, "copy one", lambda folder: (folder / "loop").symlink_to("loop")),
    Row("read_plan: too large", read("big.toml"), PlanError, "bytes", lambda folder: os.truncate(_touched(folder / "big.toml"), 1 << 25)),
    Row("read_plan: empty", read("bad.toml"), PlanError, "data: missing", text("")),
    Row("read_plan: no TOML", read("bad.toml"), PlanError, "TOML", text("data: yes")),
    Row("read_plan: binary", read("bad.toml"), PlanError, "TOML", text(b"\xff\xfe\x00")),
    Row("read_plan: a key twice", read("bad.toml"), PlanError, "TOML", text("[data]\nname='a'\nname='b'")),
    Row("read_plan: a zero byte", read("bad.toml"), PlanError, "TOML", text(b"[data]\nname='\x00'")),
    Row("read_plan: nested deeply", read("bad.toml"), PlanError, "nested", text("a = " + "[" * 50_000)),
    Row("run: a plan that is a pipe", command("run", "pipe"), PlanError, "a pipe", lambda folder: os.mkfifo(folder / "pipe")),
    Row("run --dry-run: no such plan", command("run", "nowhere.toml", "--dry-run"), PlanError, "copy one"),
]  # fmt: skip


def _touched(path):
    path.touch()
    return path


def plan(**changes):
    return lambda folder: edited(folder / "plan.toml", "bad.toml", **changes)


def run_bad(folder):
    return rw.run(folder / "bad.toml", folder / "new", progress=False)


def with_maps(make, name="maps.npy"):
    """A plan whose method is this file of maps."""

    def given(folder):
        make(folder / name)
        edited(folder / "plan.toml", "bad.toml", IG=f'{{ name = "maps", path = "{name}" }}')

    return given


def object_array(path):
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


MAPS = [
    Row("maps: no such file", run_bad, PlanError, "No such file", plan(IG='{ name = "maps", path = "nowhere.npy" }')),
    Row("maps: an unknown kind of file", run_bad, PlanError, r"\.npy", with_maps(lambda path: path.write_text("a"), "maps.txt")),
    Row("maps: a text named .npy", run_bad, PlanError, "save them again", with_maps(lambda path: path.write_text("no array"))),
    Row("maps: an empty file", run_bad, PlanError, "save them again", with_maps(lambda path: path.write_bytes(b""))),
    Row("maps: an array of objects", run_bad, PlanError, "save them again", with_maps(object_array)),
    Row("maps: several arrays", run_bad, PlanError, "choose one", with_maps(lambda path: np.savez(path, a=np.zeros(8), b=np.zeros(8)), "maps.npz")),
    Row("maps: a broken .safetensors", run_bad, PlanError, "save them again", with_maps(lambda path: path.write_bytes(b"broken"), "maps.safetensors")),
    Row("maps: too few", run_bad, PlanError, "one map per image", with_maps(lambda path: np.save(path, np.zeros((7, 12, 12))))),
    Row("maps: of no array in the file", run_bad, PlanError, "choose one|holds",
        with_maps(lambda path: save_file({"a": np.zeros(1), "b": np.zeros(1)}, path), "maps.safetensors")),
    Row("weights: no such file", run_bad, PlanError, "weights", plan(factory='"my_model:build"\nweights = "nowhere.safetensors"')),
    Row("weights: broken", run_bad, PlanError, "weights", lambda folder: (
        (folder / "w.safetensors").write_bytes(b"broken"), plan(factory='"my_model:build"\nweights = "w.safetensors"')(folder))),
    Row("weights: of another model", run_bad, PlanError, "weights|match", lambda folder: (
        save_file({"a": np.zeros(1, np.float32)}, folder / "w.safetensors"),
        plan(factory='"my_model:build"\nweights = "w.safetensors"')(folder))),
    Row("factory: no such module", run_bad, PlanError, "nowhere", plan(factory='"nowhere:build"')),
    Row("factory: no such function", run_bad, PlanError, "name after the colon", plan(factory='"my_model:nothing"')),
]  # fmt: skip

SCRATCH = [
    Row("compare: a scratch folder that is a file", lambda folder: _scratch(folder, folder / "plan.toml"), StoreError, "ROADWORTHY_SCRATCH"),
    Row("compare: a scratch folder below a file", lambda folder: _scratch(folder, folder / "plan.toml" / "x"), StoreError, "ROADWORTHY_SCRATCH"),
    Row("compare: a scratch folder that is a device", lambda folder: _scratch(folder, Path("/dev/null")), StoreError, "ROADWORTHY_SCRATCH"),
]  # fmt: skip


def _scratch(folder, place):
    with mock.patch.dict(os.environ, ROADWORTHY_SCRATCH=str(place)):
        data = np.zeros((2, 1, 4, 4)), np.zeros(2, int)
        return rw.compare(lambda images: images.flatten(1)[:, :2], data, {"a": np.zeros((2, 4, 4))}, progress=False)


ROWS = [*IMAGES, *OUTPUTS, *DOWNLOADS, *PLANS, *MAPS, *SCRATCH]
