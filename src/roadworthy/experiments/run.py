"""`run` a plan into a run directory, and `load` what one holds."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from roadworthy.core.errors import IncompleteError, InputError, StoreError
from roadworthy.core.files import check_output
from roadworthy.core.types import UNLABELED
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.sweep import source_of
from roadworthy.experiments.audit_items import QUESTIONS, AuditSettings, default_fractions
from roadworthy.experiments.audit_run import Audit, audit_of, audit_state, run_audit
from roadworthy.experiments.build import build, build_parts, check_training, make_worker
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.design import Design
from roadworthy.experiments.executors import InProcess, Local, Ray
from roadworthy.experiments.fingerprints import Fingerprints, check_unchanged, fingerprints
from roadworthy.experiments.inputs import check_unit_labels, input_facts
from roadworthy.experiments.pending import Survey, survey
from roadworthy.experiments.plan_design import design_of
from roadworthy.experiments.plan_parts import with_key
from roadworthy.experiments.plans import Plan, plan_from, read_plan
from roadworthy.experiments.plans.plan import LOCATIONS
from roadworthy.experiments.progress import Bar
from roadworthy.experiments.rehearsal import REHEARSAL, rehearse
from roadworthy.experiments.results import Results, collect, read_saved
from roadworthy.experiments.runner import Executor, GroupKey, Listener, execute, grouping, origin
from roadworthy.experiments.source import Source
from roadworthy.experiments.stores.manifests import TIMES
from roadworthy.experiments.stores.run_directory import RunDirectory
from roadworthy.experiments.worker import Worker
from roadworthy.report.findings import Findings
from roadworthy.report.html.page import write_page

ExecutorName = Literal["local", "ray"]


def run(
    plan: str | Path | Plan,
    store: str | Path | None = None,
    *,
    executor: ExecutorName = "local",
    jobs: int = 1,
    address: str = "local",
    progress: bool = True,
) -> Comparison:
    """Run the pending items of a plan in a run directory, which is created or resumed, and load its results.

    `store`: the run directory, by default runs/NAME-OF-PLAN. `jobs`: processes; 1 computes in this one, 0 means as many
    as cores and the plan's threads allow. `executor`: "local", or "ray" for the cluster at `address`.
    """
    _check_arguments(plan, store, executor, jobs, address)
    opened = _as_read(plan) if isinstance(plan, Plan) else read_plan(plan)
    folder = Path(store) if store is not None else default_store(plan)
    with Bar("run", progress) as bar:
        run_plan(opened, RunDirectory(folder), executor, jobs, address, bar)
    return load(folder)


def _check_arguments(plan: Any, store: Any, executor: Any, jobs: Any, address: Any) -> None:
    if not isinstance(plan, str | Path | Plan):
        raise InputError(f"plan is a {type(plan).__name__}: give the path of a TOML file, or an rw.read_plan(...)")
    _check_folder("store", store, optional=True)
    if executor not in ("local", "ray"):
        raise InputError(f"executor={executor!r}: choose 'local' or 'ray'")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 0:
        raise InputError(f"jobs={jobs!r}: give a number of processes, or 0 for as many as cores allow")
    if not isinstance(address, str) or not address:
        raise InputError(f"address={address!r}: give that of a Ray cluster, such as '10.0.0.1:6379', or 'local'")


def _check_folder(name: str, folder: Any, optional: bool = False) -> None:
    if not (isinstance(folder, str | Path) and str(folder) and "\0" not in str(folder)) and not (
        optional and folder is None
    ):
        raise InputError(f"{name}={folder!r}: give the path of a run directory, such as 'runs/mine'")


def _as_read(plan: Plan) -> Plan:
    """A run directory keeps the text of its plan, so the plan must be what its text says."""
    if not plan.text or replace(plan_from(tomllib.loads(plan.text), plan.folder), text=plan.text) != plan:
        raise InputError(
            "this plan is not the one in its file: a run directory keeps the file, so change that and read it again"
        )
    return plan


def default_store(plan: str | Path | Plan) -> Path:
    if isinstance(plan, Plan):
        raise InputError("say where the results of this plan belong, as in store='runs/mine'")
    return Path("runs") / Path(plan).stem


@dataclass(frozen=True, eq=False)
class Prepared:
    """A plan that is ready to run."""

    plan: Plan
    experiment: Experiment
    prints: Fingerprints
    design: Design

    @property
    def group_key(self) -> GroupKey:
        return grouping({name: source_of(method) for name, method in self.experiment.methods.items()})

    def executor(self, name: ExecutorName, jobs: int, address: str) -> Executor:
        make = partial(make_worker, self.plan, self.prints)
        if name == "ray":
            return Ray(make, address, self.plan.threads)
        jobs = jobs or max(1, (os.cpu_count() or 1) // self.plan.threads)
        return Local(make, jobs) if jobs > 1 else InProcess(Worker(self.experiment, verify=True))


def prepare(plan: Plan) -> Prepared:
    experiment = build(plan)
    evaluators = [evaluator for _, _, evaluator in plan.settings]
    with_key("evaluation.units", check_unit_labels, experiment, plan.fractions, evaluators)
    prints = fingerprints(plan, experiment)
    return Prepared(plan, experiment, prints, design_of(plan, prints))


def run_plan(
    plan: Plan,
    store: RunDirectory,
    executor: ExecutorName,
    jobs: int,
    address: str,
    listener: Listener,
    on_complaints: Callable[[list[str]], None] = lambda complaints: None,
) -> Survey:
    """Run what is pending; returns the state of the run directory. The runner writes plan and manifest."""
    store.check_for_plan()  # before any data are read
    listener.on_stage("reading data and model")
    prepared = prepare(plan)
    with store.locked():
        complaints = store.clean()
        complaints += keep_plan(plan, store)
        on_complaints(complaints)
        write_manifest(prepared, store)
        if survey(prepared.design, store).missing:
            check_training(plan, prepared.experiment)
            listener.on_stage(REHEARSAL)
            noted = rehearse(prepared.experiment, prepared.design.fractions, plan.seeds[0]).noted
            store.write_manifest({**store.manifest(), "noted": noted})
        chosen = prepared.executor(executor, jobs, address)
        state = execute(prepared.design, store, chosen, prepared.group_key, listener)
        store.forget_failures(state.goals)
        return state


def keep_plan(plan: Plan, store: RunDirectory) -> list[str]:
    """A run directory holds the plan that was run last."""
    content, complaints = plan.text.encode(), []
    if store.plan_path.exists() and store.plan_path.read_bytes() != content:
        complaints = [
            f"{store.root} holds results of another plan; status, show and export follow this one from now on. "
            "The other results are kept: run that plan again to see them"
        ]
    store.write_plan(content)
    return complaints


def write_manifest(prepared: Prepared, store: RunDirectory) -> None:
    data = prepared.experiment.data
    store.write_manifest(
        {
            **origin(),
            "kind": "plan",
            "fingerprints": prepared.prints._asdict(),
            "folder": str(prepared.plan.folder.resolve()),
            "classes": data.classes,
            "unlabeled": bool((next(data.batches(1)).labels == UNLABELED).all()),
            "about": {
                "Model": _text(prepared.plan.model),
                "Data": _text(prepared.plan.data),
                **input_facts(prepared.experiment),
            },
            **{name: store.manifest().get(name, {}) for name in TIMES},
            "noted": store.manifest().get("noted", []),
        }
    )


def _text(spec: Mapping[str, Any]) -> str:
    """A part and its options, for people; not where its files lie.

    >>> _text({"name": "cifar10", "root": "/home/me/data", "split": "test"})
    'cifar10 (split: test)'
    >>> _text({"name": "cifar-resnet", "depth": 20})
    'cifar-resnet-20'
    """
    name = "-".join(str(spec[key]) for key in ("factory", "name", "depth") if key in spec)
    shown = {key: value for key, value in spec.items() if key not in ("name", "factory", "depth", "root", "path")}
    options = [f"{key}: {Path(value).name if key in LOCATIONS else value}" for key, value in shown.items()]
    return f"{name} ({', '.join(options)})" if options else str(name)


# ── reading a run directory ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run directory with its plan, read without its data."""

    store: RunDirectory
    plan: Plan
    prints: Fingerprints
    design: Design

    @property
    def source(self) -> Source:
        check = partial(check_unchanged, self.plan, self.prints)
        return Source(
            self.design, self.store, lambda: build(self.plan), check, lambda: build_parts(self.plan, self.prints)
        )

    def results(self) -> Results:
        return collect(self.design, survey(self.design, self.store), self.store, self.store.manifest())


def open_run(folder: str | Path, plan: Plan | None = None) -> OpenRun:
    """`plan`: its own file, where the paths in the kept copy do not lead to the data any more."""
    store = RunDirectory(Path(folder))
    manifest = store.manifest()
    if manifest.get("kind") != "plan" or not store.plan_path.is_file():
        raise StoreError(f"{folder} is not the run directory of a plan: make one with `roadworthy run PLAN`")
    kept = read_plan(store.plan_path)
    kept = replace(kept, folder=Path(manifest.get("folder", kept.folder)))
    prints = Fingerprints.from_json(manifest.get("fingerprints", {}))
    return OpenRun(store, plan or kept, prints, design_of(kept, prints))


def load(folder: str | Path, plan: str | Path | None = None) -> Comparison:
    """The results in a run directory: of a plan, or of a saved comparison. No code of the plan is run."""
    _check_folder("folder", folder)
    if not Path(folder).exists():
        raise StoreError(f"{folder} does not exist: make a run directory with `roadworthy run PLAN --store {folder}`")
    store = RunDirectory(Path(folder))
    manifest = store.manifest()
    if manifest.get("kind") == "comparison":
        return Comparison(read_saved(store))
    opened = open_run(folder, read_plan(plan) if plan is not None else None)
    results = opened.results()
    if not results.predictions:
        missing = 0 if results.missing is None else len(results.missing)
        raise IncompleteError(f"{folder} holds no complete curve yet, {missing:,} are incomplete: run its plan again")
    group_key = grouping({name: name for name in opened.design.base_methods})
    return Comparison(results, opened.source, group_key, opened.plan.text)


def write_report(folder: Path, out: Path, plan: Path | None = None) -> Path:
    """The report of a run directory, with the tables of its last audit; also where no curve is complete yet."""
    check_output(out)
    audit = Audit.load(folder / "audit")
    try:
        return load(folder, plan).report(out, audit)
    except IncompleteError as error:
        opened = open_run(folder)
        results = opened.results()
        findings = Findings(
            state="NOT YET",
            conclusion=f"Nothing can be ranked yet: {error}",
            no_examples="nothing is ranked yet",
            facts=dict(results.about),
            missing=results.missing,
            plan=opened.plan.text,
        )
        return write_page(out, findings)


# ── auditing a plan ──────────────────────────────────────────────────────────────────────────────────────────────────


def plan_of(target: Path, store: Path | None) -> tuple[Plan, RunDirectory]:
    """A plan and its run directory; a run directory alone holds its plan."""
    if not target.exists():
        raise InputError(f"{target} does not exist: give a run directory, or a plan with --store")
    if target.is_dir():
        if store is not None:
            raise InputError(f"{target} and --store {store} are both folders: give a plan and its run directory")
        return open_run(target).plan, RunDirectory(target)
    if store is None:
        raise InputError(f"{target} is a plan: say where its results are, as in --store runs/{target.stem}")
    return read_plan(target), RunDirectory(store)


def audit_plan(
    plan: Plan,
    store: RunDirectory,
    settings: AuditSettings | None,
    classifier: str,
    questions: tuple[str, ...],
    jobs: int,
    on_complaints: Callable[[list[str]], None],
) -> tuple[Audit, int]:
    """Compute what the audit lacks; returns its tables, written to audit/ too, and how many items are missing."""
    store.check_for_plan()
    settings = settings or AuditSettings(default_fractions(plan.fractions), classifier, questions)
    if store.manifest().get("kind") == "plan":
        opened = open_run(store.root)
        source = Source(opened.design, store, lambda: build(plan))
        if opened.plan.text == plan.text and not audit_state(source, settings).missing:
            return _written(source, settings, store), 0
    prepared = prepare(plan)
    with store.locked(), Bar("audit") as bar:
        on_complaints([*store.clean(), *keep_plan(plan, store)])
        write_manifest(prepared, store)
        source = Source(prepared.design, store, lambda: prepared.experiment)
        bar.expect(audit_state(source, settings).missing)
        state = run_audit(source, settings, prepared.executor("local", jobs, ""), prepared.group_key, bar)
    return _written(source, settings, store), len(state.missing)


def _written(source: Source, settings: AuditSettings, store: RunDirectory) -> Audit:
    """The tables of all questions, as far as they were answered with these settings, also in earlier audits."""
    state = audit_state(source, replace(settings, questions=tuple(QUESTIONS)))
    fresh = Source(source.design, store, source.build)
    results = collect(fresh.design, fresh.state, store, store.manifest())
    curves, chance = None, 0.5
    if results.predictions:
        comparison = Comparison(results)
        curves, chance = comparison.curves(), comparison.chance
    audit = audit_of(source, state, curves, chance)
    audit.save(store.root / "audit")
    return audit
