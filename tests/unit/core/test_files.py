"""Files are written completely or not at all, by several threads at once."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from roadworthy.core.files import write_atomically


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_threads_write_at_once_with_the_permissions_of_open_and_without_touching_the_umask(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched, ThreadPoolExecutor(8) as threads:
            patched.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to all threads"))
            paths = [tmp_path / f"{number}.json" for number in range(100)]
            list(threads.map(lambda path: write_atomically(path, path.name.encode()), paths))
    finally:
        os.umask(before)
    assert sorted(tmp_path.iterdir()) == sorted(paths)  # and no temporary file is left
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o640}  # 666 less 027
    assert all(path.read_bytes() == path.name.encode() for path in paths)
