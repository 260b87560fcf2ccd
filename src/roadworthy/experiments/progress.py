"""A progress bar that listens to a run."""

from types import TracebackType

from roadworthy.core.progress import ProgressBar
from roadworthy.experiments.pending import Survey
from roadworthy.experiments.runner import Event

_STAGES = {
    "baseline": "predicting",
    "maps": "explaining",
    "predictions": "evaluating",
    "imputer": "training imputer",
    "model": "fine-tuning",
    "audit": "auditing",
}


class Bar:
    """Counts items; its title names what was done last."""

    def __init__(self, title: str, show: bool = True):
        self._title, self._bar = title, ProgressBar(title, show)
        self._total = 0

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def expect(self, items: int) -> None:
        self._total += items
        self._bar.total(self._total)

    def on_start(self, survey: Survey) -> None:
        self.expect(len(survey.missing))

    def on_event(self, event: Event) -> None:
        stage = _STAGES[event.item.kind]
        what = event.item.label.get("method") or event.item.label.get("imputer") or ""
        self._bar.advance(1, f"{self._title}: {stage} {what}".rstrip())
