"""Runtime, GAIN, leakage, neighbors and the toy world, for docs/reproduction.md."""

import pandas as pd

from reproduction.claims import PAPERS_MSE
from reproduction.tables import (
    GAP,
    IMPUTERS,
    METHODS,
    NOT_RUN,
    ORDERS,
    Results,
    markdown,
    number,
    only,
    paper,
    percent,
    spread,
    where,
)

CONTROLS = ("random", "edges", "center")


def runtimes(results: Results) -> str:
    title = "## Runtime"
    if not results.has("cost"):
        return f"{title}\n\nCPU seconds of evaluating and of training: {NOT_RUN}."
    cost = results.table("cost").set_index("imputer")
    roar = cost.loc["fixed", "roar"]
    rows = []
    for _, reported in paper("runtimes").iterrows():
        imputer, retrained = reported["imputer"], reported["evaluator"] == "retrain"
        in_paper = (f"{reported['seconds']:,.0f} s", f"{reported['seconds'] / 3903:.1%}")
        here = (GAP, GAP, GAP)
        if imputer in cost.index:
            seconds = cost.loc[imputer, "roar" if retrained else "road"]
            per_image = cost.loc[imputer, "training" if retrained else "evaluating"]
            here = (f"{1000 * per_image:.2f} ms", f"{seconds:,.0f} s", f"{seconds / roar:.2%}")
        rows.append((f"{reported['evaluator']} {imputer}", *in_paper, *here))
    head = ("strategy", "paper, per curve", "relative", "here, per image", "per fraction, extrapolated", "relative")
    return f"""{title}

Measured here: a ResNet-18 with the paper's stem and width, {int(cost["images"].iloc[0])} CIFAR-10 images, one thread, half of the
pixels removed. CPU seconds per image to impute and evaluate it, and to impute it and train on it once. Extrapolated to
one fraction at the paper's size: evaluating 10,000 test images; training for 40 epochs on 50,000, then evaluating. Maps
are left out: retraining needs those of the train images too, so including them would favor ROAD.

{markdown(head, rows)}"""


# ── GAIN ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def gain(results: Results) -> str:
    table = results.table("gain-masks")
    rows = [
        (
            row.imputer,
            f"{row.train_images:,}" if row.train_images else GAP,
            row.epochs or GAP,
            spread(row.mse, row.low, row.high, 4),
            number(row.all_pixels, 4),
        )
        for row in table.itertuples()
    ]
    known = {row[0] for row in rows}
    rows += [(name, GAP, GAP, NOT_RUN, NOT_RUN) for name in ("GAIN, default", "GAIN, long") if name not in known]
    images = f"{int(table['images'].iloc[0]):,}" if len(table) else "2,000"
    head = ("imputer", "train images", "epochs", "MSE, removed pixels", "MSE, all pixels")
    return f"""## GAIN on the paper's masks, CIFAR-10

Scattered pixels, a random fraction of up to half of each image, the same masks of the same {images} test images for every
imputer. *Default* is the recipe of `plans/gain-cifar10.toml`, *long* a longer training; both at a quarter of the paper's
width, with alpha 100 and hint rate .01.

{markdown(head, rows)}

**Which error is {number(PAPERS_MSE, 4)}?** The paper's text says "MSE to the original pixels"; its code averages over all pixels, and kept
pixels have an error of 0 there. Over all pixels the error is about a quarter of that in removed pixels. The paper's
number is compared with the error in *removed* pixels, the stricter reading; both are shown.

The search, imputation MSE in removed pixels on held-out train images, two epochs here and 100 in the paper, whose numbers
are over all pixels:

{_search(results)}

What differs from the authors' networks, beside width and epochs (docs/gain.md has the full list): they normalize batches
after every convolution, here spectral norm alone is used; they upsample by a transposed convolution, here by nearest
neighbors and a convolution; their discriminator has an output per pixel and channel, here one per pixel; their learning
rate falls when the FID stagnates, here by a cosine; they keep the epoch with the lowest FID, here the one with the lowest
imputation MSE on held-out images is kept; they flip images, here there is no augmentation."""


def _search(results: Results) -> str:
    search, rows = results.table("gain-masks-search"), []
    alphas = sorted(set(paper("gain")["alpha"]))
    for hint in sorted(set(paper("gain")["hint"])):
        cells = []
        for alpha in alphas:
            here = where(search, alpha=alpha, hint=hint)
            reported = only(paper("gain"), alpha=alpha, hint=hint)["mse"]
            value = number(float(here["imputation"].iloc[0]), 4) if len(here) else NOT_RUN
            cells.append(f"{value} / {number(reported, 4)}")
        rows.append((f"hint {hint:g}", *cells))
    return markdown(("ours / paper", *(f"alpha {alpha:g}" for alpha in alphas)), rows)


# ── leakage ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def masks(results: Results) -> str:
    curve = results.table("mask-curve")
    sizes = sorted(set(curve.get("masks", ())))
    rows = [
        (f"{method}, {reader}", *(_mask_cell(where(curve, reader=reader, method=method, masks=size)) for size in sizes))
        for reader, method in dict.fromkeys(zip(curve.get("reader", ()), curve.get("method", ()), strict=True))
    ]
    learned = (
        markdown(("method, reader", *(f"{size:,} masks" for size in sizes)), rows)
        if rows
        else f"{NOT_RUN.capitalize()}."
    )
    return f"""## Class information in the masks, CIFAR-10

Accuracy in percent of a network that sees only the binary masks of the most relevant half of the pixels, by the number of
train masks, on the masks of 5,000 test images; chance is 10 %. The paper shows a figure: almost 80 % for IG-SG with a
ResNet-18 and 50,000 masks.

{learned}

{_mask_audit(results)}"""


def _mask_audit(results: Results) -> str:
    table = where(results.table("masks"), order="morf")
    if table.empty:
        return f"Five-fold cross-validated on the test masks alone, all methods: {NOT_RUN}."
    fractions = sorted(set(table["fraction"]))
    rows = [
        (method, *(_mask_cell(where(table, method=method, fraction=fraction)) for fraction in fractions))
        for method in (*METHODS, *CONTROLS)
    ]
    head = ("method", *(f"{fraction:.0%} removed" for fraction in fractions))
    return f"Five-fold cross-validated on the test masks alone, the small network; LeRF at p equals MoRF at 1 − p:\n\n{markdown(head, rows)}"


def _mask_cell(rows: pd.DataFrame) -> str:
    if rows.empty:
        return GAP
    row = rows.iloc[0]
    return f"{percent(row['accuracy'])} [{percent(row['low'])}, {percent(row['high'])}]"


def detection(results: Results) -> str:
    table = results.table("detection")
    title = "## Can imputed pixels be detected? CIFAR-10"
    if table.empty:
        return f"{title}\n\n{NOT_RUN.capitalize()}."
    table = table[table["masks"].isin(["scatter", "blobs"])]
    fractions = sorted(set(table["fraction"]))
    rows = []
    for imputer in (name for name in IMPUTERS if name in set(table["imputer"])):
        for kind in ("scatter", "blobs"):
            matches = [where(table, imputer=imputer, masks=kind, fraction=fraction) for fraction in fractions]
            cells = [
                f"{percent(match['error'].iloc[0])} ({number(match['auc'].iloc[0])})" if len(match) else GAP
                for match in matches
            ]
            rows.append((f"{imputer}, {kind}", *cells))
    return f"""{title}

Error in percent of a mask detector, per pixel, and in parentheses its AUC, by imputer, kind of random mask and fraction
removed. An AUC of .5 means no detection. The paper shows a figure: near 0 for fixed imputation, much larger for linear,
largest for the GAN.

{markdown(("imputer and masks", *(f"{fraction:.0%}" for fraction in fractions)), rows)}"""


def neighbors(results: Results) -> str:
    title = "## Correlation of neighboring pixels"
    if not results.has("neighbors"):
        return f"{title}\n\n{NOT_RUN.capitalize()}."
    rows = []
    for kind, value in {"direct": ".89", "diagonal": ".82"}.items():
        pair = [only(results.table("neighbors"), experiment=name, neighbors=kind) for name in ("cifar10", "food101")]
        rows.append((kind, value, *(number(row[how], 3) for how in ("within", "over") for row in pair)))
    head = ("paper, CIFAR-10", "CIFAR-10, within images", "Food-101", "CIFAR-10, over all", "Food-101")
    return f"""{title}

Within images (after subtracting the mean of each channel) and over all images together; the paper does not say which.

{markdown(("neighbors", *head), rows)}"""


# ── geometry ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def geometry(results: Results) -> str:
    title = "## Geometry of the masks"
    gammas = where(results.table("geometry"), fraction=0.5)
    if gammas.empty:
        return f"{title}\n\nγ of the masks, and agreement after debiasing: {NOT_RUN}."
    rows = [
        (method, *(number(float(only(gammas, method=method, order=order)["gamma"])) for order in ORDERS))
        for method in (*METHODS, *CONTROLS)
    ]
    return f"""{title}

γ with half of the pixels removed, CIFAR-10: the share of the removed pixels' variance that linear imputation does not
restore (docs/audit.md). At γ = 1 imputation restores nothing; a small γ means that it restores most. How debiasing by γ
changes the agreement of retrained networks is in the table of claims.

{markdown(("method", *ORDERS.values()), rows)}"""


def toy(results: Results) -> str:
    table = results.table("toy-shares")
    rows = [
        (
            row.sentence,
            f"{row.holds} of {row.worlds}",
            f"{percent(row.share, 0)} % [{percent(row.low, 0)}, {percent(row.high, 0)}]",
        )
        for row in table.itertuples()
    ]
    return f"""## The toy world

The paper shows one world and does not give the frequencies and phases of its class means. Here they are drawn (1, 2 or 3
turns, random phases); regressions on unmodified images have an accuracy of 95 %. In how many random worlds does a
sentence hold, with the 95 % interval over worlds? Ranks are by the mean accuracy over five fractions. docs/leakage.md
has more on these worlds. From `toy-worlds.csv`.

{markdown(("sentence", "holds in", "share"), rows) if rows else NOT_RUN}"""
