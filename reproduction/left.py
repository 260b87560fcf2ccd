"""Points of a plan that are not in `results/` yet: python -m reproduction.left PLAN --store RUN [--jobs N]

Points that are committed in `results/` are not computed again, also where their run directory is gone: their ids are
compared. So a plan of many trainings can be spread over days and machines. All points of one seed come before those of
the next. Harvest afterwards (`reproduction.harvest`), also while it runs.
"""

import argparse
from pathlib import Path

from reproduction.ids import point_id
from reproduction.tables import RESULTS, Results
from roadworthy.core.results import Point
from roadworthy.experiments.items import Item
from roadworthy.experiments.pending import Survey, pending, survey
from roadworthy.experiments.plans import Plan, read_plan
from roadworthy.experiments.progress import Bar
from roadworthy.experiments.run import keep_plan, prepare, write_manifest
from roadworthy.experiments.runner import ManifestWriter, run_items
from roadworthy.experiments.stores.run_directory import RunDirectory


def left(state: Survey, done: set[str]) -> dict[Point, tuple[Item, ...]]:
    """The points that are neither done nor stored, by seed."""
    points = {point: items for point, items in state.points.items() if point_id(items) not in done}
    missing = {point: items for point, items in points.items() if not state.complete(point)}
    return dict(sorted(missing.items(), key=lambda pair: pair[0].seed))


def run_left(plan: Plan, store: RunDirectory, done: set[str], jobs: int = 1) -> int:
    """Compute the points that are left, and what they need; returns how many items failed."""
    prepared = prepare(plan)
    with store.locked(), Bar(store.root.name) as bar:
        store.clean()
        keep_plan(plan, store)
        write_manifest(prepared, store)
        state = survey(prepared.design, store)
        goals = [item for items in left(state, done).values() for item in items]
        missing, manifest = pending(goals, state.stored), ManifestWriter(store)
        bar.expect(missing)
        try:
            with prepared.executor("local", jobs, "local").started() as session:
                return run_items(missing, store, session, prepared.group_key, manifest, bar)
        finally:
            manifest.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--store", type=Path, required=True, help="run directory")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    done = set(Results(options.results).points(options.plan.stem)["item"])
    if failed := run_left(read_plan(options.plan), RunDirectory(options.store), done, options.jobs):
        raise SystemExit(f"{failed} items failed: see `roadworthy status {options.store}`")


if __name__ == "__main__":
    main()
