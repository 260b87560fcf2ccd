"""The sentences of a self-test: none says more than the interval it rests on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from roadworthy.experiments.wording import SCORE_NAMES, block_name, bounds, count, listed, varying_fields
from roadworthy.statistics import BlockKey, out_of_scope
from roadworthy.statistics.scores import table_blocks
from roadworthy.statistics.self_test import SHARES

Tables = Mapping[str, pd.DataFrame]
Main = tuple[str, str]
"""evaluator and imputer"""


class Doubt(NamedTuple):
    """Why a setting should not be trusted blindly."""

    method: str
    imputer: str
    evaluator: str
    text: str


def rows_of(table: pd.DataFrame) -> Iterator[Any]:
    """With columns as attributes, whose types pandas cannot know."""
    return iter(table.itertuples())


def summary(order: pd.DataFrame, main: Main) -> str:
    """The known order in a few words, in the setting to look at first."""
    own = order[(order["evaluator"] == main[0]) & (order["imputer"] == main[1])]
    if (own["state"] == "moved").any():
        return "a control that loses nothing moved"
    own = _methods(own)
    if wrong := own[own["state"] == "reversed"]["score"].unique().tolist():
        return f"damaged maps score better by {listed([SCORE_NAMES[name].split(' (')[0] for name in wrong])}"
    leading = own[own["leading"].astype(bool)]
    if leading.empty:
        return "no damaged copies were evaluated"
    if (leading["state"] != "found").any():
        return f"damage of all images is not seen with {count(int(leading['images'].iloc[0]), 'image')}"
    smallest = leading["smallest"].max()
    return f"sees damage of {_percent(smallest)} of the images" if smallest < 1 else "sees damage only of all images"


def sentences(tables: Tables, main: Main) -> tuple[str, ...]:
    """Known order, smoothness, scope, randomization; of each, the setting to look at first comes first."""
    order, smooth = tables["known_order"], tables["smoothness"]
    blocks = _ordered(order, main)
    lines = [line for key, rows in blocks for line in _known_order(rows, tables["damage"], _place(key, order))]
    lines += [_smoothness(rows, _place(key, smooth)) for key, rows in _ordered(smooth, main)]
    lines += _scope(tables["scope"], main[1])
    return (*lines, *_randomization(tables["randomization"]))


def doubts(tables: Tables) -> tuple[Doubt, ...]:
    """Settings in which the true order is reversed or not seen, and methods that survive randomization."""
    found = []
    for key, rows in table_blocks(tables["known_order"]).items():
        for row in rows_of(rows):
            text = _complaint(row, tables["damage"], _place(key, tables["known_order"]))
            if text:
                found.append(Doubt(row.method, key.imputer, key.evaluator, text))
    for row in rows_of(tables["randomization"]):
        if row.leading and row.amount == 1 and row.state == "does not fall":
            text = f"{row.method} keeps its score if the weights of the model are shuffled: {_change(row)}."
            found.append(Doubt(row.method, row.imputer, row.evaluator, text))
    return tuple(found)


def _complaint(row: Any, damage: pd.DataFrame, place: str) -> str:
    name = SCORE_NAMES[row.score].split(" (")[0]
    if row.state == "moved":
        return f"The control {row.method} loses nothing if images exchange its maps, but its {name} moved{place}."
    if row.state == "reversed":
        return (
            f"Self-test: copies of {row.method} in which more images carry another image's map score clearly better "
            f"by {name}{place}. There, this benchmark does not rank by what the maps say about their images."
        )
    return _not_seen(row, damage, place) if row.leading and row.state == "not seen" else ""


def _not_seen(row: Any, damage: pd.DataFrame, place: str) -> str:
    return (
        f"With {count(row.images, 'image')} this benchmark does not see that every image carries another image's map "
        f"({row.method}{place}): the score falls by {_loss(row, damage, 1.0)}. Either these maps say little about "
        "their own image, or the images are too few."
    )


# ── known order ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _known_order(rows: pd.DataFrame, damage: pd.DataFrame, place: str) -> list[str]:
    lines = [text for row in rows_of(rows) if (text := _complaint(row, damage, place))]
    leading = _methods(rows[rows["leading"].astype(bool)])
    found = leading[leading["state"] == "found"]
    for smallest in (share for share in SHARES if (found["smallest"] == share).any()):
        group = found[found["smallest"] == smallest]
        first = next(rows_of(group))
        text = f"With {count(int(first.images), 'image')} this benchmark sees damage of {_percent(smallest)} of the "
        text += f"images of {listed(group['method'].tolist())}{place}: the score falls by "
        text += _loss(first, damage, smallest) + (f" ({first.method})." if len(group) > 1 else ".")
        less = [share for share in SHARES if share < smallest]
        lines.append(f"{text} It does not see {_percent(less[-1])} damage." if less else text)
    return lines


def _loss(row: Any, damage: pd.DataFrame, share: float) -> str:
    same = damage["share"] == share
    for field in (*BlockKey._fields, "score", "method"):
        same &= damage[field] == getattr(row, field)
    found = next(rows_of(damage[same]))
    return f"{_number(found.loss)} {bounds(found.low, found.high)}"


# ── smoothness ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _smoothness(rows: pd.DataFrame, place: str) -> str:
    leading = rows[rows["leading"].astype(bool)]
    gains = leading[leading["low"] > 0]
    if gains.empty:
        largest = leading[["low", "high"]].abs().max(axis=1).max()
        lost = leading[leading["high"] < 0]
        text = f"Neither blurring nor sharpening clearly raises a score{place}"
        if lost.empty:
            return f"{text}: no copy moves it by more than {largest:.3f}."
        worst = next(rows_of(lost.sort_values("change")))
        return f"{text}; {_copy(worst)} lowers it by {_number(-worst.change)} {bounds(-worst.high, -worst.low)}."
    best = next(rows_of(gains.sort_values("change", ascending=False)))
    kind = "smooth" if best.how == "blurred" else "sharp"
    return (
        f"This benchmark favors {kind} maps by {_number(best.change)} {bounds(best.low, best.high)}{place}: so much "
        f"does {_copy(best)} gain by {'smoothing' if kind == 'smooth' else 'sharpening'} alone."
    )


def _copy(row: Any) -> str:
    return f"{row.method} {row.how} at a width of {row.amount:g} pixel{'' if row.amount == 1 else 's'}"


# ── scope and randomization ──────────────────────────────────────────────────────────────────────────────────────────


def _scope(table: pd.DataFrame, first: str) -> list[str]:
    return [
        _scope_of(imputer, table[table["imputer"] == imputer])
        for imputer in sorted(dict.fromkeys(table["imputer"]), key=lambda name: name != first)
    ]


def _scope_of(imputer: str, table: pd.DataFrame) -> str:
    """By the measure that says which fractions are out of scope."""
    distant = bool(((table["measure"] == "distance") & (table["fraction"] > 0)).any())
    shown = table[(table["measure"] == ("distance" if distant else "confidence")) & (table["fraction"] > 0)]
    worst = next(rows_of(shown.sort_values("outside", ascending=False)))
    what = (
        "whose predicted class other real images have are farther from the nearest of them than 95 % of the real images"
        if distant
        else "have a lower confidence than 95 % of the real images"
    )
    share = f"{_percent(worst.outside)} [{_percent(worst.low)}, {_percent(worst.high)}]"
    images = count(int(worst.images), "image")
    text = f"Imputed with {imputer}, up to {share} of {images} {what} ({_point(worst.order, worst.fraction)})"
    out = {order: fractions for (_, order), fractions in out_of_scope(table).items()}
    if not out:
        return f"{text}; at no fraction are clearly more than half."
    parts = [f"{_order(order)} {', '.join(map(_percent, fractions))}" for order, fractions in out.items()]
    return f"{text}; clearly more than half are at {' and at '.join(parts)}."


def _order(order: str) -> str:
    return {"morf": "MoRF", "lerf": "LeRF"}.get(order, order)


def _point(order: str, fraction: float) -> str:
    return f"{_order(order)}, {_percent(fraction)} removed"


def _randomization(table: pd.DataFrame) -> list[str]:
    rows = table[table["leading"].astype(bool) & (table["amount"] == 1)]
    if rows.empty:
        return []
    by_state = {state: rows.loc[rows["state"] == state, "method"].tolist() for state in rows["state"].unique()}
    texts = {
        "falls": "clearly fall",
        "does not fall": "do not fall by more than the margin",
        "not shown": "are not shown to fall",
        "same maps": "stay the same, as their maps are not computed from the given model: this says nothing about them",
    }
    parts = [f"those of {listed(by_state[state], 9)} {text}" for state, text in texts.items() if state in by_state]
    return [f"With shuffled weights, the scores: {'; '.join(parts)}."]


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _methods(order: pd.DataFrame) -> pd.DataFrame:
    """Without the negative controls."""
    return order[~order["negative"].astype(bool)]


def _ordered(table: pd.DataFrame, main: Main) -> list[tuple[BlockKey, pd.DataFrame]]:
    blocks: Sequence[tuple[BlockKey, pd.DataFrame]] = list(table_blocks(table).items())
    return sorted(blocks, key=lambda block: (block[0].evaluator, block[0].imputer) != main)


def _place(key: BlockKey, table: pd.DataFrame) -> str:
    name = block_name(key, varying_fields(table))
    return f", {name[:1].lower()}{name[1:]}" if name else ""


def _change(row: Any) -> str:
    return f"it changes by {_number(row.change)} {bounds(row.low, row.high)}"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
