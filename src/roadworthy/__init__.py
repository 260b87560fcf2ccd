"""Which explanation can you trust? Roadworthy removes pixels as each method claims, debiases, and measures."""

__version__ = "0.1.0"
