"""Results in W&B, MLflow, TensorBoard and files: read back with the tools themselves, offline."""

import json
import warnings

import pandas as pd
import pytest

import roadworthy as rw
import worlds
from libraries import library

SCORE = "roadworthy/no-retrain/linear/the _map_/srg"


@pytest.fixture(scope="module")
def comparison():
    world = worlds.quadrants(n=12)
    methods = {"the <map>": world.truth, "gradient": "gradient"}
    return rw.compare(
        world.model, (world.images, world.labels), methods, fractions=(0.3,), controls=("random",), progress=False
    )


def score(comparison):
    return comparison.ranking().set_index("method")["srg"]["the <map>"]


def test_a_folder_gets_files_that_dvc_reads(comparison, tmp_path):
    comparison.log(tmp_path / "out")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["no-retrain"]["linear"]["the <map>"]["srg"] == score(comparison)
    assert metrics["no-retrain"]["linear"]["the <map>"]["srg_rank"] == 1
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "out" / "curves.csv"), comparison.curves(), check_dtype=False, check_exact=False
    )
    assert "<html" in (tmp_path / "out" / "report.html").read_text()


def test_tensorboard_holds_scores_curves_and_the_ranking(comparison, tmp_path):
    library("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with SummaryWriter(tmp_path) as writer:
            comparison.log(writer, step=3)
        events = library("tensorboard.backend.event_processing.event_accumulator").EventAccumulator(str(tmp_path))
        events.Reload()
    (scalar,) = events.Scalars(SCORE)
    assert scalar.value == pytest.approx(score(comparison))
    assert scalar.step == 3
    curve = events.Scalars("roadworthy curves/no-retrain linear morf gradient")
    assert [point.step for point in curve] == [0, 30]
    assert "roadworthy/ranking/text_summary" in events.Tags()["tensors"]
    assert events.Tags()["images"] == ["roadworthy/ranking"]


@pytest.mark.filterwarnings("ignore")
def test_wandb_gets_scores_tables_and_the_page(comparison, tmp_path, monkeypatch):
    wandb = library("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(rw.errors.InputError, match="no active run"):
        comparison.log(wandb)
    run = wandb.init(mode="offline", dir=str(tmp_path), settings=wandb.Settings(x_disable_stats=True))
    try:
        comparison.log(run)
        assert run.summary[SCORE] == pytest.approx(score(comparison))
        assert "roadworthy/ranking" in dict(run.summary)
    finally:
        run.finish()
    assert list(tmp_path.rglob("report*.html"))
    assert list(tmp_path.rglob("ranking*.table.json"))


@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_scores_tables_and_the_page(comparison, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = library("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with pytest.raises(rw.errors.InputError, match="no active run"):
        comparison.log(mlflow)
    with mlflow.start_run() as run:
        comparison.log(mlflow)
    found = mlflow.MlflowClient().get_run(run.info.run_id).data.metrics[SCORE]
    assert found == pytest.approx(score(comparison))
    names = {item.path for item in mlflow.MlflowClient().list_artifacts(run.info.run_id, "roadworthy")}
    expected = {f"roadworthy/{name}" for name in ("metrics.json", "curves.csv", "report.html", "ranking.json")}
    assert expected <= names


@pytest.mark.filterwarnings("ignore")
def test_loggers_of_lightning_pass_their_run_on(comparison, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    loggers, mlflow = library("lightning.pytorch.loggers"), library("mlflow")
    comparison.log(loggers.TensorBoardLogger(str(tmp_path)))
    assert list(tmp_path.rglob("events.out.tfevents*"))
    logger = loggers.MLFlowLogger(tracking_uri=(tmp_path / "mlflow").as_uri())
    comparison.log(logger)
    metrics = mlflow.MlflowClient((tmp_path / "mlflow").as_uri()).get_run(logger.run_id).data.metrics
    assert metrics[SCORE] == pytest.approx(score(comparison))


@pytest.mark.parametrize("run", [3, None, object(), json])
def test_anything_else_is_refused(comparison, run):
    with pytest.raises(rw.errors.InputError, match="cannot log to"):
        comparison.log(run)
