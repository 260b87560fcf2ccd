"""Kill a run at random moments, again and again: `make faults KILLS=200`.

The plan has what can be interrupted: maps, predictions, a trained imputer, a fine-tuned model and retraining. Every run
directory must end with the bytes of an uninterrupted run; no item may be written twice. A kill hits the driver, or with
two jobs now and then a worker, which the driver must survive.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [path for path in (str(TESTS), str(TESTS.parent)) if path not in sys.path]

PLAN = """
[data]
name = "folder"
root = "images/test"
[train]
root = "images/train"
[model]
factory = "my_model:fixed"
[methods]
IG = { name = "ig", steps = 3 }
IG-SG = { name = "ig-sg", steps = 3, ig_samples = 2 }
[evaluation]
self_test = false
imputers = ["fixed", "linear", "gain"]
evaluators = ["no-retrain", "retrain", "fine-tuned"]
fractions = [0.3, 0.7]
controls = ["random", "blurred"]
copied = ["IG"]
[recipe]
epochs = 3
batch_size = 10
lr = 0.003
model = { factory = "my_model:build" }
[gain]
epochs = 4
batch_size = 10
width = 4
blocks = 1
validation = 0.25
[run]
batch_size = 10
map_batch_size = 10
block_size = 10
"""

MODEL = """
from torch import manual_seed, nn

def build(width=8):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(4 * width, 4))

def fixed():
    manual_seed(0)
    return build()
"""


def make_project(root: Path) -> Path:
    import worlds
    from projects import QUADRANTS, save_images, write

    world = worlds.quadrants(n=50)
    save_images(root / "images" / "train", world, QUADRANTS, range(30))
    save_images(root / "images" / "test", world, QUADRANTS, range(30, 50))
    write(root / "my_model.py", MODEL)
    write(root / "plan.toml", PLAN)
    return root


@dataclass
class Tally:
    kills: Counter[str] = field(default_factory=Counter)
    """by what was killed"""
    runs: int = 0
    """directories that were finished and compared"""
    differ: list[str] = field(default_factory=list)
    """files whose bytes are not those of an uninterrupted run"""
    twice: list[str] = field(default_factory=list)
    """items that were written again"""
    left: list[str] = field(default_factory=list)
    """temporary files, checkpoints and quarantined files that remained"""
    orphans: list[float] = field(default_factory=list)
    """seconds that workers outlived their killed driver"""
    failures: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.differ or self.twice or self.left or self.failures)

    def __str__(self) -> str:
        slowest = max(self.orphans, default=0.0)
        return (
            f"{sum(self.kills.values())} kills ({', '.join(f'{n} {what}' for what, n in self.kills.items())}) in "
            f"{self.runs} runs: {len(self.differ)} files differ, {len(self.twice)} items were written twice, "
            f"{len(self.left)} leftovers, {len(self.failures)} failures; workers outlived their driver by at most "
            f"{slowest:.2f} s"
        )


def started(project: Path, store: str, jobs: int) -> int:
    """`roadworthy run` in a fork of this process, which saves the seconds that imports take; returns its id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        os.chdir(project)
        for stream in (1, 2):
            os.dup2(os.open(project / f"{store}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        from roadworthy.cli.app import app

        app(["run", "plan.toml", "--store", store, "--jobs", str(jobs)], standalone_mode=False)
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def ended(process: int) -> int | None:
    """The exit code, negative for a signal; None while it runs."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def stamps(store: Path) -> dict[Path, tuple[int, int]]:
    found = {}
    for path in store.glob("*/*/*.safetensors"):
        status = path.stat()
        found[path] = status.st_mtime_ns, status.st_ino
    return found


def children(process: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def workers(process: int) -> list[int]:
    return [pid for pid in children(process) if b"spawn_main" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def lived_on(pids: list[int], most: float = 30.0) -> float:
    """How long processes remained after this call."""
    start = time.monotonic()
    while any(b"spawn_main" in _command(pid) for pid in pids) and time.monotonic() - start < most:
        time.sleep(0.01)
    return time.monotonic() - start if pids else 0.0


def wait_for_kill(process: int, store: Path, chance: random.Random, typical: float) -> int | None:
    """A moment at random: by the clock, or a few items and milliseconds later. Returns the exit code if it ended."""
    deadline = time.monotonic() + (chance.uniform(0, typical) if chance.random() < 0.4 else 600)
    goal, later = len(stamps(store)) + chance.randint(0, 25), chance.uniform(0, 0.1)
    while (code := ended(process)) is None and time.monotonic() < deadline and len(stamps(store)) < goal:
        time.sleep(0.002)
    time.sleep(later)
    return code if code is not None else ended(process)


def one_directory(
    project: Path, store: str, jobs: int, kills: int, chance: random.Random, typical: float, tally: Tally
) -> None:
    """Kill and resume at most that many times, then let it finish."""
    root = project / store
    while kills > 0:
        before = stamps(root)
        process = started(project, store, jobs)
        code = wait_for_kill(process, root, chance, typical)
        if code is not None:
            if code:
                tally.failures.append(f"{store}: the run ended with {code}, see {project / store}.log")
            break
        busy = workers(process)
        if busy and chance.random() < 0.2:
            _kill(chance.choice(busy))
            tally.kills[f"workers of {jobs} jobs"] += 1
            time.sleep(chance.uniform(0, 2))
        _kill(process)
        os.waitpid(process, 0)
        kills -= 1
        tally.kills[f"drivers of {jobs} jobs"] += 1
        if busy:
            tally.orphans.append(lived_on(busy))
        after = stamps(root)
        tally.twice += [str(path) for path, stamp in before.items() if after.get(path) != stamp]
    finish(project, store, jobs, tally)


def finish(project: Path, store: str, jobs: int, tally: Tally) -> None:
    before = stamps(project / store)
    code = os.waitstatus_to_exitcode(os.waitpid(started(project, store, jobs), 0)[1])
    if code:
        tally.failures.append(f"{store}: the last run ended with {code}, see {project / store}.log")
    after = stamps(project / store)
    tally.twice += [str(path) for path, stamp in before.items() if after.get(path) != stamp]


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def compared(root: Path, reference: dict[str, bytes], tally: Tally) -> None:
    from commands import contents

    found = contents(root)
    tally.runs += 1
    tally.differ += [name for name in found.keys() | reference.keys() if found.get(name) != reference.get(name)]
    expected = {"plan.toml", "manifest.json", "lock", *reference}
    tally.left += [
        str(path) for path in root.rglob("*") if path.is_file() and str(path.relative_to(root)) not in expected
    ]


def campaign(
    folder: Path, kills: int, seed: int = 0, per_run: int = 8, say: Callable[[str], object] = lambda text: None
) -> Tally:
    """`kills` in all, over directories of one and of two jobs in turn."""
    import roadworthy.experiments.run  # noqa: F401  before the forks: they need not import it
    from commands import contents

    chance, tally = random.Random(seed), Tally()
    project = make_project(folder)
    start = time.monotonic()
    finish(project, "uninterrupted", 1, tally)
    typical = {1: time.monotonic() - start, 2: 2 * (time.monotonic() - start)}
    reference = contents(project / "uninterrupted")
    if tally.failures or not reference:
        raise RuntimeError(f"the uninterrupted run failed:\n{(project / 'uninterrupted.log').read_text()}")
    say(f"uninterrupted: {len(reference)} items in {typical[1]:.0f} s")
    number = 0
    while (done := sum(tally.kills.values())) < kills and not tally.failures:
        jobs, store = number % 2 + 1, f"run {number}"
        one_directory(project, store, jobs, min(per_run, kills - done), chance, typical[jobs], tally)
        compared(project / store, reference, tally)
        number += 1
        say(str(tally))
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-run", type=int, default=8, help="kills per run directory")
    parser.add_argument("--out", type=Path, help="write the tally there, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roadworthy-kills-", ignore_cleanup_errors=True) as folder:
        tally = campaign(
            Path(folder), options.kills, options.seed, options.per_run, lambda text: print(text, flush=True)
        )
    if options.out:
        options.out.write_text(json.dumps({**asdict(tally), "kills": dict(tally.kills)}))
    for name in ("differ", "twice", "left", "failures"):
        for line in getattr(tally, name):
            print(f"{name}: {line}")
    return 0 if tally.clean else 1


if __name__ == "__main__":
    sys.exit(main())
