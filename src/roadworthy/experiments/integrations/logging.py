"""`comparison.log(run)`: scores, tables and the page, in W&B, MLflow, TensorBoard or a folder."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.integrations.metrics import flat, metrics, write_metrics

NAME = "roadworthy"
TABLES = ("ranking", "curves", "warnings")


def log(comparison: Comparison, run: Any, step: int | None = None) -> None:
    """See `Comparison.log`."""
    if isinstance(run, str | Path):
        write_metrics(comparison, Path(run))
        comparison.report(Path(run) / "report.html")
        return
    library = _library(run)
    if library is None:
        raise InputError(
            f"cannot log to a {type(run).__name__}: give a run of W&B, `mlflow` or a run of it, a SummaryWriter, "
            "a logger of Lightning, or a folder"
        )
    _LOGGERS[library](comparison, run, step)


def _library(run: Any) -> str | None:
    if isinstance(run, ModuleType):
        return run.__name__ if run.__name__ in _LOGGERS else None
    roots = [base.__module__.split(".") for base in type(run).__mro__]
    for root in roots:
        if root[0] in _LOGGERS:
            return root[0]
        if root[:3] == ["torch", "utils", "tensorboard"]:
            return "tensorboard"
    return None


def _wandb(comparison: Comparison, run: Any, step: int | None) -> None:
    wandb = import_module("wandb")
    run = run.run if isinstance(run, ModuleType) else run
    if run is None:
        raise InputError("W&B has no active run: start one with wandb.init(), or give the run")
    tables = {f"{NAME}/{name}": wandb.Table(dataframe=table) for name, table in _tables(comparison).items()}
    page = {f"{NAME}/report": wandb.Html(_page(comparison), inject=False)}
    run.log({**flat(metrics(comparison)), **tables, **page}, step=step)


def _mlflow(comparison: Comparison, run: Any, step: int | None) -> None:
    mlflow = import_module("mlflow")
    active = mlflow.active_run() if isinstance(run, ModuleType) else run
    if active is None:
        raise InputError("MLflow has no active run: log inside `with mlflow.start_run():`, or give the run")
    _mlflow_client(comparison, mlflow.MlflowClient(), active.info.run_id, step)


def _mlflow_client(comparison: Comparison, client: Any, run_id: str, step: int | None) -> None:
    for name, value in flat(metrics(comparison)).items():
        client.log_metric(run_id, name, value, step=step)
    with TemporaryDirectory() as folder:
        write_metrics(comparison, Path(folder))
        comparison.report(Path(folder) / "report.html")
        client.log_artifacts(run_id, folder, NAME)
    for name, table in _tables(comparison).items():
        client.log_table(run_id, table, f"{NAME}/{name}.json")


def _tensorboard(comparison: Comparison, writer: Any, step: int | None) -> None:
    for name, value in flat(metrics(comparison)).items():
        writer.add_scalar(name, value, step)
    for row in comparison.curves().to_dict("records"):  # the axis of a chart is a whole number: the percentage removed
        parts = (row[name] for name in ("evaluator", "imputer", "order", "method"))
        writer.add_scalar(f"{NAME} curves/{' '.join(map(str, parts))}", row["accuracy"], round(100 * row["fraction"]))
    writer.add_text(f"{NAME}/ranking", f"```\n{comparison}\n```", step)
    writer.add_figure(f"{NAME}/ranking", comparison.plot.ranking(), step)
    writer.flush()


def _lightning(comparison: Comparison, logger: Any, step: int | None) -> None:
    experiment = logger.experiment
    if hasattr(logger, "run_id"):
        _mlflow_client(comparison, experiment, logger.run_id, step)
    else:
        log(comparison, experiment, step)


_LOGGERS: dict[str, Callable[[Comparison, Any, int | None], None]] = {
    "wandb": _wandb,
    "mlflow": _mlflow,
    "tensorboard": _tensorboard,
    "tensorboardX": _tensorboard,
    "lightning": _lightning,
    "pytorch_lightning": _lightning,
}


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Columns of plain strings and numbers, as every tool reads them."""
    tables = {name: getattr(comparison, name)() for name in TABLES}
    return {name: _plain(table) for name, table in tables.items() if len(table)}


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: column.astype(float) if pd.api.types.is_numeric_dtype(column) else column.astype(str).astype(object)
            for name, column in table.items()
        }
    )


def _page(comparison: Comparison) -> str:
    with TemporaryDirectory() as folder:
        return comparison.report(Path(folder) / "report.html").read_text(encoding="utf-8")
