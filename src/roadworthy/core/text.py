"""Text from others (names of methods, classes, files) where it is printed or put into a table.

>>> printable("IG \\x1b[2J"), csv_cell("=1+1"), csv_cell("-IG"), csv_text("'-IG")
('IG \\\\x1b[2J', "'=1+1", "'-IG", '-IG')
"""

import re
from typing import Any

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, changes the terminal or reverses the text; not tab and newline."""

_FORMULA = re.compile("[=+\\-@\t\r]")
"""How a cell begins that a spreadsheet would compute."""


def printable(text: str) -> str:
    """Control characters as escape sequences that show what they are."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def csv_cell(value: Any) -> Any:
    """Text that a spreadsheet would compute gets a leading apostrophe; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value.lstrip("'")) else value


def csv_text(value: Any) -> Any:
    """What `csv_cell` was given."""
    quoted = isinstance(value, str) and value.startswith("'") and _FORMULA.match(value.lstrip("'"))
    return value[1:] if quoted else value


def csv_bytes(table: Any) -> bytes:
    """A DataFrame as CSV without its index, safe to open in a spreadsheet."""
    texts = {name: column.map(csv_cell) for name, column in table.items() if column.dtype.kind not in "biufcmM"}
    return str(table.assign(**texts).to_csv(index=False)).encode()
