"""From a plan to its design: JSON, with fingerprints in place of paths."""

from collections.abc import Sequence

from roadworthy.core.errors import StoreError
from roadworthy.evaluation.experiment import Setting
from roadworthy.evaluation.units import FeatureMask, UnitSetting, setting_name
from roadworthy.experiments.design import Design, EarlyStopping
from roadworthy.experiments.fingerprints import Fingerprints, block_rows
from roadworthy.experiments.items import Block, Spec, combined, sequential_rows
from roadworthy.experiments.plan_parts import make_part
from roadworthy.experiments.plans import Plan
from roadworthy.experiments.plans.plan import LOCATIONS
from roadworthy.experiments.registry import lookup


def design_of(plan: Plan, prints: Fingerprints) -> Design:
    train = combined(prints.train) if prints.train else ""
    return Design(
        model=_model_spec(plan, prints),
        methods={name: _method_spec(plan, name, prints) for name in plan.methods},
        blind_controls={name: {"name": name} for name in plan.blind_controls},
        copy_controls=plan.copy_controls,
        copied=plan.copied,
        orders={name: {"name": name} for name in plan.orders},
        imputers={name: _imputer_spec(plan, name, prints, train) for name in plan.imputers},
        trained_imputers=plan.trained_imputers,
        settings=tuple(Setting(*setting) for setting in plan.settings),
        fractions=tuple(fraction for fraction in plan.fractions if fraction > 0),
        seeds=plan.seeds,
        target=plan.target,
        units=_unit_spec(plan, prints),
        unit_name=_unit_name(plan),
        maps={"seed": plan.map_seed, "batch_size": plan.map_batch_size, "channel_reduction": plan.channel_reduction},
        batch_size=plan.batch_size,
        threads=plan.threads,
        blocks=_blocks("test", block_rows(plan, prints.images, prints.block_size), prints.data),
        train_blocks=_blocks("train", sequential_rows(prints.train_images, prints.block_size), prints.train),
        training=_training_spec(plan, prints, train),
        network=_fingerprinted(plan.network or {}, "recipe.model", prints),
        early_stopping=EarlyStopping(plan.until, plan.confidence, plan.margin, plan.population) if plan.until else None,
        confidence=plan.confidence,
        margin=plan.margin,
        self_test=plan.self_test,
    )


def _blocks(split: str, rows: Sequence[tuple[int, ...]], prints: Sequence[str]) -> tuple[Block, ...]:
    if len(rows) != len(prints):
        raise StoreError(f"the manifest names {len(prints)} blocks of {split} images, the plan makes {len(rows)}")
    return tuple(Block(split, index, *pair) for index, pair in enumerate(zip(rows, prints, strict=True)))


def _model_spec(plan: Plan, prints: Fingerprints) -> Spec:
    """Predictions from probabilities differ from those from logits; log-probabilities make no difference."""
    outputs = {"outputs": prints.outputs} if prints.outputs == "probabilities" else {}
    autocast = {"autocast": plan.autocast} if plan.autocast else {}
    layout = {"channels_last": True} if plan.channels_last else {}
    return {**_fingerprinted(plan.model, "model", prints), "weights": prints.model, **outputs, **autocast, **layout}


def _method_spec(plan: Plan, name: str, prints: Fingerprints) -> Spec:
    """With what the default baseline is, where the plan alone does not say it."""
    baseline = {"baseline": prints.baselines[name]} if name in prints.baselines else {}
    return {**_fingerprinted(plan.methods[name], f"methods.{name}", prints), **baseline}


def _fingerprinted(spec: Spec, key: str, prints: Fingerprints) -> Spec:
    """Fingerprints of its file, its code and the files among its options, in place of their paths."""
    code = spec.get("function", spec.get("factory", ""))
    fingerprint = prints.files.get(key, prints.files.get(code))
    options = {name: prints.files.get(f"{key}.{name}", value) for name, value in spec.items() if name in LOCATIONS}
    return {
        **_placeless(spec),
        **(options if "function" in spec else {}),
        **({"fingerprint": fingerprint} if fingerprint else {}),
    }


def _imputer_spec(plan: Plan, name: str, prints: Fingerprints, train: str) -> Spec:
    spec = plan.imputers[name]
    if name in plan.trained_imputers and plan.gain is not None:
        return {**spec, "train": train, "recipe": plan.gain.spec}
    if name in plan.imputer_files or "function" in spec:
        return _fingerprinted(spec, f"imputers.{name}", prints)
    if lookup("imputers", spec["name"]).needs_data:
        return {**spec, "data": combined(prints.data)}
    return spec


def _unit_spec(plan: Plan, prints: Fingerprints) -> Spec:
    """Nothing for pixels: ids do not mention them."""
    if plan.units.get("name") == "pixels":
        return {}
    return {**_fingerprinted(plan.units, "evaluation.units", prints), "reduction": plan.unit_reduction}


def _unit_name(plan: Plan) -> str:
    """As tables have it; no file is read and no code of the plan is run."""
    spec, rule = plan.units, plan.unit_reduction
    if "function" in spec:
        return setting_name(spec["function"].partition(":")[2], rule)
    if spec["name"] == "feature-mask":
        return setting_name(FeatureMask.name, rule)
    return UnitSetting(make_part("units", spec), rule).name


def _training_spec(plan: Plan, prints: Fingerprints, train: str) -> Spec:
    if plan.recipe is None:
        return {}
    functions = {key: value for key, value in (("loss", plan.loss), ("augment", plan.augment)) if value}
    sources = {f"{key}_fingerprint": prints.files[name] for key, name in functions.items() if name in prints.files}
    return {"train": train, "recipe": plan.recipe.spec, **functions, **sources}


def _placeless(spec: Spec) -> Spec:
    return {key: value for key, value in spec.items() if key not in LOCATIONS}
