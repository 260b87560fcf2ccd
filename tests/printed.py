"""Pages with examples and what they print: ```text after ```python. `python tests/printed.py` writes it anew."""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
_NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")
NOISE = 0.05
"""Another processor rounds differently, so a prediction near the border between classes may change."""


def pages():
    """The pages that are written by hand, but for what Sphinx builds."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in found if page.relative_to(ROOT).parts[1] not in ("_build", "gallery")]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def printed_blocks(text):
    """Each Python example, and what the page says that it prints: None if it says nothing."""
    return [(match[1], match[2]) for match in _EXAMPLE.finditer(text)]


def same_text(printed, shown):
    """The same words; numbers may differ by the noise, or by a tenth."""
    if _NUMBER.sub("#", printed).split() != _NUMBER.sub("#", shown).split():
        return False
    pairs = zip(_NUMBER.findall(printed), _NUMBER.findall(shown), strict=True)
    return all(_close(*(float(number.replace(",", "").replace("−", "-")) for number in pair)) for pair in pairs)


def _close(a, b):
    return abs(a - b) <= max(NOISE, 0.1 * abs(b))


def written(text):
    """The page with what its examples print today."""
    variables = {}

    def run(match):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(match[1], variables)
        if match[2] is None:
            return match[0]
        return f"```python\n{match[1]}```\n\n```text\n{out.getvalue().rstrip()}\n```\n"

    return _EXAMPLE.sub(run, text)


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())  # examples write files
    for page in [ROOT / "README.md", *pages()]:
        text = page.read_text(encoding="utf-8")
        if any(shown is not None for _, shown in printed_blocks(text)):
            page.write_text(written(text), encoding="utf-8")
