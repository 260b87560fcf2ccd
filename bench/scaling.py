"""A run of 100,000 items on Ray, whose workers only sleep: what is left is the driver's own work.

A few async actors on this machine stand for hundreds of workers. The executor's session, the runner and the run
directory are the real ones; a task takes some seconds of sleep and returns made-up arrays. The run is stopped half way
and resumed.

python bench/scaling.py [--items 100000] [--workers 400] [--seconds 2]        # the table of docs/scaling.md
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from roadworthy.experiments.design import Design
from roadworthy.experiments.executors.ray import _imported, _Session
from roadworthy.experiments.fingerprints import Fingerprints
from roadworthy.experiments.pending import survey
from roadworthy.experiments.plan_design import design_of
from roadworthy.experiments.plans.reading import plan_from
from roadworthy.experiments.runner import Outcome, Task, execute, grouping
from roadworthy.experiments.stores.run_directory import RunDirectory

ACTORS, BLOCK, SIDE = 2, 128, 4
PLAN = """
[data]
name = "digits"
[model]
name = "small-cnn"
[methods]
{methods}
[evaluation]
imputers = ["fixed", "linear", "image-mean"]
fractions = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
controls = []
self_test = false
"""
METHODS = tuple(f"method-{number}" for number in range(8))
PER_BLOCK = 1 + len(METHODS) * (1 + 2 * 3 * 9)
"""items: a baseline, and of each method maps and 2 orders × 3 imputers × 9 fractions"""


def arrays(kind: str) -> dict[str, np.ndarray]:
    if kind == "maps":  # of 224 pixels they would be 26 MB; here they are small, and counted separately
        return {"maps": np.zeros((BLOCK, SIDE, SIDE), np.float32), "ties": np.zeros((BLOCK, 2))}
    integers = {name: np.zeros(BLOCK, np.int64) for name in ("labels", "predicted")}
    return {"ids": np.arange(BLOCK), **integers, "probability": np.zeros(BLOCK, np.float32)}


class Sleeper:
    """Stands for many workers: its tasks sleep at the same time."""

    async def attempt(self, task: Task, seconds: float) -> Outcome:
        await asyncio.sleep(seconds)
        return Outcome([arrays(item.kind) for item in task.items], seconds)


class Method:
    """A handle whose `attempt.remote(task)` is that of a sleeping worker."""

    def __init__(self, actor, seconds: float):
        self.attempt, self._actor, self._seconds = self, actor, seconds

    def remote(self, task: Task):
        return self._actor.attempt.remote(task, self._seconds)


class Sleeping:
    """An executor with the session of the Ray executor, over workers that sleep."""

    def __init__(self, workers: int, seconds: float):
        self.workers, self.seconds = workers, seconds

    @contextmanager
    def started(self):
        os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  Ray's 15 lets sleepers starve where others compute
        ray = _imported()
        ray.init(num_cpus=2, log_to_driver=False, logging_level="WARNING", include_dashboard=False)
        try:
            each = -(-self.workers // ACTORS)
            actor = ray.remote(Sleeper).options(max_concurrency=each, num_cpus=0)
            actors = [actor.remote() for _ in range(ACTORS)]
            session = _Session.__new__(_Session)
            session._ray, session._running = ray, {}
            session._idle = [Method(actors[number % ACTORS], self.seconds) for number in range(self.workers)]
            yield session
        finally:
            ray.shutdown()


class Stopped(Exception):
    """The run is stopped here, as by Ctrl-C."""


class Timed:
    """A listener that counts: what a progress bar would be told. It stops the run after so many items."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.ids, self.tasks, self.stop_after = [], 0, stop_after
        self.created = self.first_begun = self.last_stored = time.perf_counter()

    def on_start(self, survey) -> None:
        pass

    def on_stage(self, text) -> None:
        pass

    def on_begin(self, items) -> None:
        if not self.tasks:
            self.first_begun = time.perf_counter()
        self.tasks += 1

    def on_event(self, event) -> None:
        self.ids.append(event.item.id)
        self.last_stored = time.perf_counter()
        if len(self.ids) == self.stop_after:
            raise Stopped


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(name: str, action):
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"  {name:34} {wall:8.2f} s {cpu:8.2f} CPU s   peak {megabytes():5.0f} MB", flush=True)
    return result, wall, cpu


def run(design: Design, store: RunDirectory, executor: Sleeping, listener: Timed) -> None:
    """As `roadworthy run` starts: all files are checked first."""
    group_key = grouping({name: name for name in METHODS})

    def started() -> None:
        store.clean()
        with suppress(Stopped):
            execute(design, store, executor, group_key, listener)

    _, _, cpu = timed("run" if listener.stop_after else "run, resumed", started)
    items, seconds = len(listener.ids), listener.last_stored - listener.first_begun
    waited = listener.first_begun - listener.created
    print(
        f"    {items:,} items of {listener.tasks:,} tasks: {items / seconds:,.0f} items/s, {cpu / items * 1e3:.2f} CPU "
        f"ms of the driver per item; {waited:.1f} s to the first task, Ray's start included",
        flush=True,
    )


def files_per_folder(root: Path) -> str:
    counts = Counter(path.parent for path in root.glob("*/*/*.safetensors"))
    return f"{len(counts):,} folders of at most {max(counts.values()):,} files"


def status(root: Path) -> None:
    """A process of its own, imports included."""
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "roadworthy", "status", str(root)]
    subprocess.run(command, check=True, env=os.environ, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"  {'roadworthy status (a process)':34} {time.perf_counter() - wall:8.2f} s {cpu:8.2f} CPU s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, help="where the run directory is created; default: temporary files")
    options = parser.parse_args()
    blocks = max(1, options.items // PER_BLOCK)
    text = PLAN.format(
        methods="\n".join(f"{name} = {{ name = 'ig', steps = {steps} }}" for steps, name in enumerate(METHODS, 1))
    )
    plan = plan_from(tomllib.loads(text))
    prints = Fingerprints("model", BLOCK, blocks * BLOCK, tuple(f"block {number}" for number in range(blocks)))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        store = RunDirectory(Path(folder) / "run")
        store.write_plan(text.encode())
        store.write_manifest({"kind": "plan", "fingerprints": prints._asdict(), "date": "", "versions": {}})
        design = design_of(plan, prints)
        print(f"{blocks * PER_BLOCK:,} items, {options.workers} workers whose tasks take {options.seconds:g} s")
        timed("pending, nothing stored", lambda: survey(design, store))
        timed("pending again", lambda: survey(design, store))
        executor, half = Sleeping(options.workers, options.seconds), blocks * PER_BLOCK // 2
        first = Timed(stop_after=half)
        run(design, store, executor, first)
        stored = len(store.ids())
        second = Timed()
        run(design_of(plan, prints), store, executor, second)
        again = len(set(first.ids) & set(second.ids))
        print(f"    stopped after {half:,} items, {stored:,} were stored; {again} items were computed again")
        timed("check of all files (each run)", store.clean)
        timed("nothing left to do (pending)", lambda: survey(design_of(plan, prints), store))
        status(store.root)
        manifest = (store.root / "manifest.json").stat().st_size
        size = sum(path.stat().st_size for path in store.root.rglob("*") if path.is_file())
        print(f"  {files_per_folder(store.root)}; manifest {manifest / 1e6:.1f} MB, all files {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
