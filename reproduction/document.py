"""Write docs/reproduction.md from the committed tables: python -m reproduction.document"""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from reproduction.claims import claims, toy_order
from reproduction.tables import (
    EVALUATORS,
    FILLS,
    GAP,
    HERE,
    METHODS,
    ORDERS,
    SETTINGS,
    Setting,
    agreement,
    markdown,
    name_of,
    number,
    only,
    ours,
    pair_row,
    paper,
    percent,
    spread,
    where,
)

DOCUMENT = HERE.parent / "docs" / "reproduction.md"
PAPER_FRACTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)
EXPERIMENTS = {
    "cifar10": "CIFAR-10, ResNet-20",
    "cifar10-resnet18": "CIFAR-10, ResNet-18",
    "food101": "Food-101, ResNet-18",
}


def document() -> str:
    return "\n\n".join(part() for part in REGISTRY).strip() + "\n"


def _head() -> str:
    return """# The paper's tables, on real data

Does the paper reproduce? Here are its tables beside ours, at a size that two CPU cores manage. This page is written
by `python -m reproduction.document` from the tables in `reproduction/results/`; a test sees to it that they fit.
Every point stands in `reproduction/results/trials.csv` with the id of its trial, every row of the audit with the id of
its item: the ids are those of the stores that `make reproduce` fills, hashes of everything the number depends on.
Intervals are 95 %, over images alone: each retrained point was trained once, so the luck of training is not in them.
`removed` compares equal shares removed in MoRF and LeRF, `kept` the share removed in one with the share kept in the
other; the paper does not say which it used."""


def _differences() -> str:
    resnet20, resnet18, food = (percent(whole_accuracy(name)) for name in EXPERIMENTS)
    return f"""## What differs from the paper

- **Models.** CIFAR-10 is explained on a ResNet-20 with given weights (right on {resnet20} % of our images) and on a
  ResNet-18 of half the width, trained here on 20,000 images ({resnet18} %); the paper trains a ResNet-18 on 50,000
  (84.5 %). Food-101 is ten classes at 64 × 64, explained on a ResNet-18 of half the width, trained here ({food} %), not
  101 classes at 224 × 224 on a ResNet-50 (81.67 %).
- **PrecomputedMaps.** 81 passes per image for the eight methods instead of 901: IG with 8 steps, ensembles of 6 (IG) and 24 (GB).
- **Test images.** 1,000, not 10,000 and 25,250. One run (seed), not five.
- **Retraining.** CIFAR-10: a ResNet-8 on 3,000 images for 8 epochs; Food-101: a ResNet-18 of a quarter of the width on
  2,000 for 8 epochs. Three shares (.3, .5, .7), two on Food-101 (.3, .7). No retraining with GAIN fill. The epoch is
  chosen on held-out train images; the paper's code chooses it on the test images.
- **GAIN.** A quarter of the width, 2 epochs on 20,000 images; the search is 2 × 2 with 1 epoch each.
- **Consistency** of no-retrain settings is a mean over nine even shares; where retraining is involved, over the shares
  that were retrained.

{_gaps()}The plans say the same in their comments: `plans/cifar10-cpu.toml`, `cifar10-cpu-retrain.toml`,
`cifar10-cpu-resnet18.toml`, `food101-cpu.toml`, `food101-cpu-retrain.toml`."""


def whole_accuracy(experiment: str) -> float:
    """Accuracy on whole images, before anything is removed."""
    rows = where(ours("trials"), experiment=experiment, evaluator="no-retrain", fraction=0.0)
    return float(rows["accuracy"].iloc[0])


def _gaps() -> str:
    facts = json.loads((HERE / "results" / "facts.json").read_text(encoding="utf-8"))
    missing = {name: one["missing"] for name, one in facts.items() if one["missing"]}
    if not missing:
        return ""
    text = ", ".join(f"{count:,} points of {EXPERIMENTS[name]}" for name, count in missing.items())
    return f"**Not yet run:** {text}; curves that lack a point are left out.\n\n"


def _claims() -> str:
    rows = [(claim.name, claim.paper, claim.here, claim.prediction) for claim in claims()]
    return f"## The claims, one by one\n\n{markdown(('claim', 'paper', 'here', 'prediction'), rows, '---')}"


def _main_table() -> str:
    rows = []
    for experiment in ("cifar10", "food101"):
        for evaluator in EVALUATORS:
            for fill in FILLS:
                a, b = (evaluator, "morf", fill), (evaluator, "lerf", fill)
                cells = [spread(agreement(experiment, a, b, pairing)) for pairing in ("removed", "kept")]
                rows.append(
                    (f"{experiment}: MoRF ~ LeRF, {EVALUATORS[evaluator]}, {fill}", _said(experiment, a, b), *cells)
                )
        for order in ORDERS:
            for fill in FILLS:
                a, b = ("retrain", order, fill), ("no-retrain", order, fill)
                cells = [spread(agreement(experiment, a, b)), GAP]
                label = f"{experiment}: retrain ~ no-retrain, {ORDERS[order]}, {fill}"
                rows.append((label, _said(experiment, a, b), *cells))
    table = markdown(("Spearman correlation of rankings", "paper", "here, removed", "here, kept"), rows)
    source = "From `agreement.csv`; the paper's deviations over runs are in `reproduction/paper/agreement.csv`."
    removed, kept = (_distance(pairing) for pairing in ("removed", "kept"))
    near = (
        f"The paper's MoRF ~ LeRF numbers on CIFAR-10 (fixed and linear) are on average {number(removed)} away from "
        f"ours paired by `removed`, {number(kept)} paired by `kept`."
    )
    return f"## Consistency\n\n{table}\n\n{near} {source}"


def _distance(pairing: str) -> float:
    found = []
    for evaluator in EVALUATORS:
        for fill in ("fixed", "linear"):
            a, b = (evaluator, "morf", fill), (evaluator, "lerf", fill)
            here, said = agreement("cifar10", a, b, pairing), pair_row(paper("agreement"), a, b, table="cifar10")
            if here is not None and said is not None:
                found.append(abs(here["spearman"] - said["spearman"]))
    return sum(found) / len(found)


def _said(experiment: str, a: Setting, b: Setting) -> str:
    row = pair_row(paper("agreement"), a, b, table=experiment)
    return GAP if row is None else number(row["spearman"])


def _square(experiment: str) -> Callable[[], str]:
    def part() -> str:
        names = [name_of(setting) for setting in SETTINGS]
        rows = []
        for i, row in enumerate(SETTINGS):
            cells = [_cell(experiment, row, column) if j < i else "" for j, column in enumerate(SETTINGS)]
            rows.append((f"**{i + 1}** {names[i]}", *cells))
        table = markdown(("ours / paper", *(f"**{i + 1}**" for i in range(len(SETTINGS)))), rows)
        return f"## All settings against each other, {EXPERIMENTS[experiment]}\n\nPairing `removed`.\n\n{table}"

    return part


def _cell(experiment: str, a: Setting, b: Setting) -> str:
    found = agreement(experiment, a, b)
    here = GAP if found is None else number(found["spearman"])
    return f"{here} / {_said(experiment, a, b)}"


def _accuracies() -> str:
    text = "Per cent, ours with half of its interval / the paper's, by the share removed (LeRF too)."
    parts = [f"## Accuracies of IG-SG and GB-SG, CIFAR-10\n\n{text}"]
    for method in ("IG-SG", "GB-SG"):
        rows = []
        for setting in SETTINGS:
            cells = [_accuracy(method, setting, fraction) for fraction in PAPER_FRACTIONS]
            rows.append((name_of(setting), *cells))
        parts.append(f"**{method}**\n\n{markdown(('setting', *(f'{f:.0%}' for f in PAPER_FRACTIONS)), rows)}")
    return "\n\n".join(parts)


def _accuracy(method: str, setting: Setting, fraction: float) -> str:
    evaluator, order, fill = setting
    wanted = {"method": method, "evaluator": evaluator, "order": order, "imputer": fill, "fraction": fraction}
    found = where(ours("trials"), experiment="cifar10", **wanted)
    said = only(paper("accuracy"), **wanted)["accuracy"]
    if found.empty:
        return f"{GAP} / {said:.1f}"
    one = found.iloc[0]
    return f"{percent(one['accuracy'])} ±{percent((one['high'] - one['low']) / 2)} / {said:.1f}"


def _runtimes() -> str:
    cost = ours("cost").set_index("imputer")
    roar = cost.loc["fixed", "roar"]
    rows = []
    for _, said in paper("runtimes").iterrows():
        fill, retrained = said["imputer"], said["evaluator"] == "retrain"
        share = f"{said['seconds'] / 3903:.1%}"
        if fill not in cost.index:
            rows.append((f"{EVALUATORS[said['evaluator']]} {fill}", f"{said['seconds']:,.0f} s", share, GAP, GAP, GAP))
            continue
        one = cost.loc[fill]
        seconds = one["roar" if retrained else "road"]
        per_image = one["learning" if retrained else "evaluating"]
        rows.append(
            (
                f"{EVALUATORS[said['evaluator']]} {fill}",
                *(f"{said['seconds']:,.0f} s", share, f"{1000 * per_image:.2f} ms", f"{seconds:,.0f} s"),
                f"{seconds / roar:.2%}",
            )
        )
    table = markdown(
        ("strategy", "paper, per curve", "relative", "here, per image", "per share, extrapolated", "relative"), rows
    )
    images = int(cost["images"].iloc[0])
    return f"""## Runtime

Measured here: a ResNet-18 with the paper's stem and width, {images} CIFAR-10 images, one thread, half of the pixels
removed: time per image to fill and evaluator, and to fill and learn from once. Extrapolated to one share removed at the
paper's size: evaluating 10,000 test images; learning 40 times from 50,000, then evaluating. PrecomputedMaps are left out: retraining
needs those of the train images too, so they would favor ROAD.

{table}"""


def _gain() -> str:
    found = ours("gain-search")
    rows = []
    for hint in sorted(set(paper("gain")["hint"])):
        cells = []
        for alpha in sorted(set(paper("gain")["alpha"])):
            here = where(found, alpha=alpha, hint=hint)["imputation"]
            said = only(paper("gain"), alpha=alpha, hint=hint)["mse"]
            cells.append(f"{number(float(here.iloc[0]), 4) if len(here) else GAP} / {number(said, 4)}")
        rows.append((f"hint {hint:g}", *cells))
    table = markdown(
        ("imputation MSE, ours / paper", *(f"alpha {a:g}" for a in sorted(set(paper("gain")["alpha"])))), rows
    )
    return (
        f"## GAIN search, CIFAR-10\n\n{table}\n\nHeld-out train images, random masks; 1 epoch here, 100 in the paper."
    )


def _masks() -> str:
    rows = []
    table = where(ours("masks"), experiment="cifar10", order="morf")
    fractions = sorted(set(table["fraction"]))
    for method in (*METHODS, "random", "edges", "center"):
        cells = [_mask_cell(where(table, method=method, fraction=fraction)) for fraction in fractions]
        rows.append((method, *cells))
    chance = percent(table["chance"].iloc[0])
    images = int(table["images"].iloc[0])
    head = ("method", *(f"{fraction:.0%} removed" for fraction in fractions))
    return f"""## What the masks alone tell, CIFAR-10

Accuracy in per cent of a small network that sees binary masks only, five-fold, {images:,} masks; chance {chance} %. The
paper shows a figure (ResNet-18, 50,000 masks): almost 80 % for IG-SG. LeRF at p is MoRF at 1 − p.

{markdown(head, rows)}"""


def _mask_cell(row: pd.DataFrame) -> str:
    if row.empty:
        return GAP
    one = row.iloc[0]
    return f"{percent(one['accuracy'])} [{percent(one['low'])}, {percent(one['high'])}]"


def _recovery() -> str:
    table = where(ours("recovery"), experiment="cifar10")
    table = table[table["masks"].isin(["scatter", "blobs"])]
    fractions = sorted(set(table["fraction"]))
    rows = []
    for fill in FILLS:
        for masks in ("scatter", "blobs"):
            found = [where(table, imputer=fill, masks=masks, fraction=fraction) for fraction in fractions]
            rows.append((f"{fill}, {masks}", *(percent(one["error"].iloc[0]) if len(one) else GAP for one in found)))
    guess = where(table, imputer="linear", masks="scatter").set_index("fraction")["guess"]
    rows.append(("cannot be told", *(percent(guess[fraction]) for fraction in fractions)))
    return f"""## Can the imputed pixels be found? CIFAR-10

Error in per cent of the imputation predictor, per pixel, by fill, kind of random mask and share removed. The paper
shows a figure: near 0 for fixed fill, much harder for linear, hardest for GAN.

{markdown(("fill", *(f"{fraction:.0%}" for fraction in fractions)), rows)}"""


def _neighbors() -> str:
    said = {"direct": ".89", "diagonal": ".82"}
    rows = []
    for kind in said:
        found = [only(ours("neighbors"), experiment=name, neighbors=kind) for name in ("cifar10", "food101")]
        rows.append((kind, said[kind], *(number(one[how], 3) for how in ("within", "over") for one in found)))
    head = ("paper, CIFAR-10", "CIFAR-10, within images", "Food-101", "CIFAR-10, over all", "Food-101")
    return f"""## Neighboring pixels

Correlation within images (each channel's mean taken off) and over all images together; the paper does not say which.

{markdown(("neighbors", *head), rows)}"""


def _debiased() -> str:
    rows = []
    older = "cifar10-older"
    for fill in ("linear", "linear + debiased"):
        said = pair_row(paper("agreement"), ("retrain", "morf", fill), ("retrain", "lerf", fill), table=older)
        for experiment in ("cifar10", "food101"):
            found = where(ours("debiased-agreement"), experiment=experiment, imputer=fill)
            if found.empty:
                continue
            cells = [number(float(only(found, pairing=pairing)["spearman"])) for pairing in ("removed", "kept")]
            rows.append(
                (
                    f"{experiment}, {fill}",
                    number(said["spearman"]) if experiment == "cifar10" and said is not None else GAP,
                    *cells,
                )
            )
    gammas = where(ours("geometry"), experiment="cifar10", fraction=0.5)
    gamma_rows = [
        (method, *(number(float(only(gammas, method=method, order=order)["gamma"])) for order in ORDERS))
        for method in (*METHODS, "random", "edges", "center")
    ]
    return f"""## Linear + debiased

Agreement of MoRF and LeRF, retrained, before and after geometric debiasing (older supplement of the paper; γ as in
docs/audit.md). Points whose debiased accuracy is not between chance and 1 are left out.

{markdown(("retrain, MoRF ~ LeRF", "paper", "here, removed", "here, kept"), rows)}

γ at half of the pixels removed (1: the fill brings nothing back; small: most of it), CIFAR-10:

{markdown(("method", *ORDERS.values()), gamma_rows)}"""


def _toy() -> str:
    rows = []
    for method in toy_order("morf"):
        cells = []
        for order in ORDERS:
            found = where(ours("toy"), method=method, order=order)
            cells += [percent(found["accuracy"].mean()), percent(found["debiased"].mean())]
        rows.append((method, *cells))
    return f"""## The toy world

Mean over nine shares of the accuracy of 15 logistic regressions, and debiased. MoRF: lower is better; LeRF: higher.
How the world was chosen: docs/leakage.md. From `toy.csv`.

{markdown(("ordering", "MoRF", "debiased", "LeRF", "debiased"), rows)}"""


def _blur() -> str:
    blurs = where(ours("blur"), experiment="cifar10-resnet18", imputer="linear")
    rows = []
    for method in METHODS:
        cells = [_points(only(blurs, method=method, score=score)) for score in ("morf", "lerf", "srg")]
        debiased = [_debiased_change(method, order) for order in ORDERS]
        rows.append((method, *cells, f"{_rank(method)} → {_rank(method, blurred=True)}", *debiased))
    sentences = [
        f"A blur improves {name} of {_surely_better(blurs, score)[0]} methods for certain, "
        f"and worsens that of {_surely_better(blurs, score)[1]}."
        for score, name in (("morf", "the MoRF area"), ("lerf", "the LeRF area"), ("srg", "the combined srg"))
    ]
    head = ("method", "MoRF area", "LeRF area", "srg", "rank by srg", "MoRF, debiased", "LeRF, debiased")
    return f"""## Does blurring a map raise its rank?

CIFAR-10, ResNet-18, no-retrain, linear fill: what changes, in points of accuracy, when a map is blurred before it is
evaluated (a lower MoRF area and a higher LeRF area are better; srg = LeRF − MoRF, higher is better), and its rank among
the eight when the blurred copy takes its place.

{" ".join(sentences)} A bias by geometry alone shows so: blobs are favored in MoRF, scatter in LeRF.

Does γ undo it? The last columns are the change of the debiased accuracy, a mean over the shares (.3, .5, .7) where
it is defined for both maps. γ of scattered maps is small, and dividing by it takes many accuracies below chance or
above 1, where they say nothing; the debiasing was made for retraining and is used outside its field here.

{markdown(head, rows)}"""


def _surely_better(blurs: pd.DataFrame, score: str) -> tuple[int, int]:
    """How many methods a blur improves, and worsens, beyond the interval."""
    rows = where(blurs, score=score)
    up, down = int(rows["low"].gt(0).sum()), int(rows["high"].lt(0).sum())
    return (down, up) if score == "morf" else (up, down)


def _points(row: pd.Series) -> str:
    return f"{100 * row['change']:+.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"


def _rank(method: str, blurred: bool = False) -> int:
    scores = where(ours("scores"), experiment="cifar10-resnet18", evaluator="no-retrain", imputer="linear").set_index(
        "method"
    )["srg"]
    own = scores[f"{method} blurred" if blurred else method]
    return 1 + sum(scores[other] > own for other in METHODS if other != method)


def _debiased_change(method: str, order: str) -> str:
    points = where(ours("debiased"), experiment="cifar10-resnet18", evaluator="no-retrain", order=order)
    square = points.pivot(index="fraction", columns="method", values="debiased")
    known = square[[method, f"{method} blurred"]].dropna()
    if known.empty:
        return "undefined"
    return f"{100 * (known[f'{method} blurred'] - known[method]).mean():+.1f} ({len(known)} of {len(square)})"


def _carry_over() -> str:
    rows = [
        (f"{EXPERIMENTS[row['first']]} ~ {EXPERIMENTS[row['second']]}, {row['imputer']}", spread(row))
        for _, row in ours("carry-over").iterrows()
    ]
    ranks = []
    for method in METHODS:
        cells = []
        for experiment in EXPERIMENTS:
            table = where(ours("scores"), experiment=experiment, evaluator="no-retrain", imputer="linear")
            own = only(table, method=method)
            rank = 1 + int((table[table["method"].isin(METHODS)]["srg"] > own["srg"]).sum())
            cells.append(f"{rank} ({100 * own['srg']:.1f} [{100 * own['srg_low']:.1f}, {100 * own['srg_high']:.1f}])")
        ranks.append((method, *cells))
    return f"""## Does the ranking carry over?

Rank of each method by srg (in points, with its interval), no-retrain, linear fill:

{markdown(("method", *EXPERIMENTS.values()), ranks)}

Spearman correlation of the two rankings, images resampled in both:

{markdown(("rankings by srg", "agreement"), rows)}"""


def _again() -> str:
    facts = json.loads((HERE / "results" / "facts.json").read_text(encoding="utf-8"))
    rows = [
        (name, f"{store['items']:,}", f"{store['seconds'] / 60:,.0f} min", store["date"][:10])
        for one in facts.values()
        for name, store in one["stores"].items()
    ]
    return f"""## Run it again

`make reproduce` does all of it from nothing, and goes on where it was stopped: it needs CIFAR-10, Food-101 and the
ResNet-20 weights in `data/` (it says what is missing), and some hours on two cores.
`roadworthy run plans/cifar10.toml --dry-run` shows what the paper's full size would cost.

{markdown(("store", "items", "computing", "last run"), rows)}"""


REGISTRY: tuple[Callable[[], str], ...] = (
    _head,
    _differences,
    _claims,
    _main_table,
    _square("cifar10"),
    _square("food101"),
    _accuracies,
    _runtimes,
    _gain,
    _masks,
    _recovery,
    _neighbors,
    _debiased,
    _toy,
    _blur,
    _carry_over,
    _again,
)


def main() -> None:
    DOCUMENT.write_text(document(), encoding="utf-8")
    print(f"{DOCUMENT.relative_to(Path.cwd())} is written" if DOCUMENT.is_relative_to(Path.cwd()) else DOCUMENT)


if __name__ == "__main__":
    main()
