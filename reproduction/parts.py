"""What is left of a plan, method by method and seed by seed: python -m reproduction.parts PLAN --store RUN [--jobs N]

Points that are committed in `results/` are not computed again, also where their run directory is gone: their ids are
compared. So a plan of many trainings can be spread over days and machines. Harvest afterwards (`reproduction.harvest`).
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from reproduction.ids import point_ids
from reproduction.tables import RESULTS, Results
from roadworthy.experiments.build import Fingerprints, design_of
from roadworthy.experiments.plans import Plan, read_plan
from roadworthy.experiments.progress import Bar
from roadworthy.experiments.run import prepare, run_plan, write_manifest
from roadworthy.experiments.stores.run_directory import RunDirectory


def parts(plan: Plan) -> Iterator[Plan]:
    """The plan with one method and one seed; an item has the same id in the part and in the whole."""
    for seed, method in product(plan.seeds, plan.methods):
        yield replace(plan, seeds=(seed,), methods={method: plan.methods[method]})


def left(plan: Plan, prints: Fingerprints, done: set[str]) -> list[Plan]:
    """The parts that have a point which is not `done`."""
    return [part for part in parts(plan) if set(point_ids(design_of(part, prints)).values()) - done]


def run_left(plan: Plan, store: RunDirectory, done: set[str], jobs: int = 1) -> None:
    """Run the parts that are left. The directory is described as one of the whole plan, whatever part came last."""
    whole = prepare(plan)
    for part in left(plan, whole.prints, done):
        with Bar(f"{', '.join(part.methods)}, seed {part.seeds[0]}") as bar:
            run_plan(part, store, "local", jobs, "local", bar)
        with store.locked():
            write_manifest(whole, store)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--store", type=Path, required=True, help="run directory")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    done = set(Results(options.results).points(options.plan.stem)["item"])
    run_left(read_plan(options.plan), RunDirectory(options.store), done, options.jobs)


if __name__ == "__main__":
    main()
