"""How plain docstrings become pages: options as a list, files as links, private paths as public names."""

import inspect
import re
from pathlib import Path
from typing import Any

import roadworthy as rw

MODULES = ("attributions", "datasets", "errors", "imputers", "models", "statistics", "truth")
"""Public modules, each with its own `__all__` or, for errors, its classes."""

LIKE = ("ModelLike", "DataLike", "MethodLike", "ImputerLike")
"""Public names of unions, which Python spells out in signatures."""

_OPTION = re.compile(r"`\w+`(?:(?:,| and) `\w+`)*: ")


def module_names(module: str) -> list[str]:
    """The public names of a public module."""
    found = getattr(rw, module)
    if hasattr(found, "__all__"):
        return list(found.__all__)
    return [name for name, value in vars(found).items() if inspect.isclass(value)]


def public_names() -> dict[str, str]:
    """Where an object is defined, to where users find it: roadworthy.NAME, or roadworthy.MODULE.NAME."""
    paths = [f"roadworthy.{module}.{name}" for module in MODULES for name in module_names(module)]
    paths += [f"roadworthy.{name}" for name in rw.__all__ if name not in MODULES]
    objects = {path: _object(path) for path in paths}
    return {f"roadworthy.{name}": f"roadworthy.{name}" for name in LIKE} | {
        f"{value.__module__}.{value.__qualname__}": path
        for path, value in objects.items()
        if hasattr(value, "__qualname__") and value.__module__.startswith("roadworthy.")
    }


def named(signature: str | None) -> str | None:
    """A signature with names for unions, such as ModelLike, and for functions, whose address changes every time."""
    from sphinx.util.typing import stringify_annotation

    for name in LIKE if signature else ():
        signature = signature.replace(stringify_annotation(getattr(rw, name), "smart"), f"~roadworthy.{name}")
    shown = re.sub(r"<function (\w+) at 0x\w+>", r"\1", signature or "")
    return "" if "<" in shown else shown or None  # a default without a name: not for users to construct


def _object(path: str) -> Any:
    value: Any = rw
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    return value


def listed(lines: list[str]) -> list[str]:
    """Lines that begin with "`option`: " become a list; those that follow belong to the same entry."""
    result: list[str] = []
    inside = False
    for line in lines:
        if _OPTION.match(line):
            result += [*([] if inside else [""]), f"* {line}"]
            inside = True
        elif inside and line.strip():
            result.append(f"  {line}")
        else:
            inside = False
            result.append(line)
    return result


def linked(lines: list[str]) -> list[str]:
    """Pages that docstrings name as files become links."""
    docs = Path(__file__).parent

    def link(match: re.Match[str]) -> str:
        return f":doc:`/{match[1]}`" if (docs / f"{match[1]}.md").exists() else match[0]

    return [re.sub(r"docs/([\w/-]+)\.md", link, line) for line in lines]


def site_links(page: str) -> str:
    """Links suit a repository; on the site they are named after pages, and scripts of the gallery are pages."""
    named_after_pages = re.sub(r"\[(?:docs/)?([\w-]+)\.md\]\(", r"[\1](", page)
    return re.sub(r"\]\((?:\.\./)*examples/gallery/(plot_\w+)\.py\)", r"](/gallery/\1.rst)", named_after_pages)


def returned_figure(block: Any, block_vars: Any, gallery_conf: Any) -> str:
    """A scraper for the gallery: the figure that a block returns, as `comparison.plot.curves()` does."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    figure = block_vars["example_globals"].get("___")
    if not isinstance(figure, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=120, bbox_inches="tight")
    return str(figure_rst([path], gallery_conf["src_dir"]))
