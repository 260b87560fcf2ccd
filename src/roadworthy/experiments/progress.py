"""The progress of a run: its stage in words, the share that is done, and about how long the rest takes."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from types import TracebackType

from roadworthy.core.progress import ProgressBar, about
from roadworthy.evaluation.experiment import POINT_EVALUATORS
from roadworthy.experiments.items import Item
from roadworthy.experiments.pending import Survey
from roadworthy.experiments.runner import Event

LONG = 60.0
"""Seconds; an estimate of less is not worth a line."""

ENOUGH = 0.1
"""Share after which an estimate is given, although some methods were not measured yet."""

Work = tuple[str, str, str]
"""Items that cost about the same: their kind, their evaluator or measure, and their method or imputer."""


class Pace:
    """What the items that are left will take, learned from those that are done."""

    def __init__(self) -> None:
        self._pending: Counter[Work] = Counter()
        self._done: Counter[Work] = Counter()
        self._seconds: Counter[Work] = Counter()

    def expect(self, items: Iterable[Item]) -> None:
        self._pending.update(_work(item) for item in items)

    def done(self, item: Item, seconds: float) -> None:
        work = _work(item)
        self._pending[work] -= 1
        self._done[work] += 1
        self._seconds[work] += seconds  # type: ignore[assignment]

    @property
    def seconds_done(self) -> float:
        return float(sum(self._seconds.values()))

    @property
    def measured(self) -> bool:
        """Every kind of work that is left was done at least once."""
        return all(self._done[work] for work in +self._pending)

    @property
    def seconds_left(self) -> float | None:
        """None while a kind of work is left of which nothing was measured yet."""
        rates = [self._rate(work) for work in +self._pending]
        counts = [self._pending[work] for work in +self._pending]
        if any(rate is None for rate in rates):
            return None
        return sum(count * rate for count, rate in zip(counts, rates, strict=True) if rate is not None)

    @property
    def share(self) -> float | None:
        """How much is done, of 1."""
        done, left = self.seconds_done, self.seconds_left
        return done / (done + left) if done and left is not None else None

    def _rate(self, work: Work) -> float | None:
        """Of this work, or else the mean of those that differ in the method or imputer only."""
        alike = [work] if self._done[work] else [other for other in self._done if other[:2] == work[:2]]
        count = sum(self._done[other] for other in alike)
        return sum(self._seconds[other] for other in alike) / count if count else None


def _work(item: Item) -> Work:
    label = item.label
    name = str(label.get("method") or "") if item.kind == "maps" else str(label.get("imputer") or "")
    return item.kind, str(label.get("evaluator") or item.spec.get("measure") or ""), name


class Stages:
    """What is being computed, in words that count: "maps: IG-SG, method 2 of 11", "sweep 12 of 44: IG-SG"."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[object, int]] = {}

    def expect(self, items: Iterable[Item]) -> None:
        for item in items:
            stage, group, _ = _place(item)
            groups = self._groups.setdefault(stage, {})
            groups.setdefault(group, len(groups) + 1)

    def text(self, items: Sequence[Item]) -> str:
        stage, group, name = _place(items[0])
        groups = self._groups.get(stage, {})
        counted = f"{groups.get(group, len(groups))} of {len(groups)}"
        if stage == "maps":
            return f"maps: {name}, method {counted}"
        return f"{stage} {counted}" + (f": {name}" if name else "") if len(groups) > 1 else f"{stage} {name}".rstrip()


def _place(item: Item) -> tuple[str, object, str]:
    """The stage of an item, what is counted there, and a name to show."""
    label = item.label
    method, imputer = str(label.get("method") or ""), str(label.get("imputer") or "")
    if item.kind == "predictions" and label.get("evaluator") in POINT_EVALUATORS:
        removed = f"{100 * label['fraction']:g} % removed" if label.get("fraction") else "nothing removed"
        return "training", item.id, ", ".join(filter(None, [method, imputer, removed]))
    if item.kind == "predictions":
        return "sweep", (method, label.get("evaluator"), label.get("block")), method
    if item.kind == "maps":
        return "maps", method, method
    stages = {"baseline": "predicting", "imputer": "training imputer", "model": "fine-tuning", "audit": "measurement"}
    return stages[item.kind], item.id, method or imputer


class Bar:
    """Listens to a run and shows how far it has come."""

    def __init__(self, title: str, show: bool = True):
        self._title, self._bar = title, ProgressBar(title, show)
        self._pace, self._stages, self._stage = Pace(), Stages(), ""
        self._started: float | None = None
        self._estimated = False

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def expect(self, items: Sequence[Item]) -> None:
        self._pace.expect(items)
        self._stages.expect(items)

    def on_start(self, survey: Survey) -> None:
        self.expect(survey.missing)

    def on_stage(self, text: str) -> None:
        self._stage = text
        self._show()

    def on_begin(self, items: Sequence[Item]) -> None:
        self._started = self._started or time.monotonic()
        self.on_stage(self._stages.text(items))

    def on_event(self, event: Event) -> None:
        self._pace.done(event.item, event.seconds)
        self._estimate()
        self._show()

    def _estimate(self) -> None:
        """Once, as soon as it can be trusted, and only of what is long."""
        left, share = self._seconds_left(), self._pace.share
        if self._estimated or left is None or share is None or not (self._pace.measured or share > ENOUGH):
            return
        self._estimated = True
        if left > LONG:
            self._bar.line(f"{self._title}: {about(left)} left")

    def _show(self) -> None:
        share, left = self._pace.share, self._seconds_left()
        if share is None or left is None:
            self._bar.show(self._stage)
        else:
            self._bar.show(self._stage, share, f"{100 * share:.0f} %, {about(left)} left")

    def _seconds_left(self) -> float | None:
        """By the clock: several workers are that much faster than the sum of their seconds."""
        left, done = self._pace.seconds_left, self._pace.seconds_done
        if left is None or self._started is None or not done:
            return None
        return left * (time.monotonic() - self._started) / done
