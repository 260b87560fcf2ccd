"""The documentation site: `make docs` builds it into docs/_build/html. A warning is an error; nothing is fetched."""

import re
import sys
from pathlib import Path

import roadworthy as rw

sys.path.insert(0, str(Path(__file__).parent))
from site_tools import linked, listed, named, public_names, site_links

project = "Roadworthy"
author = "The Roadworthy developers"
copyright = author
version = release = rw.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/GALLERY_HEADER.rst", "**/*.ipynb", "**/*.json", "**.py", "**.zip"]
nitpicky = True
default_role = "code"
"""In docstrings `name` is code, as in Markdown."""

# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings: list[str] = []

# ── API ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
maximum_signature_line_length = 90
python_use_unqualified_type_names = True
nitpick_ignore_regex = [
    # Types of other packages: their inventories would have to be fetched.
    (r"py:.*", r"(?:torch|numpy|np|pandas|pd|collections|contextlib|os|pathlib|typing|nn|matplotlib|PIL)\..*"),
    (r"py:.*", r"(?:AbstractContextManager|Tensor|Path|Any|Callable|Iterator|Sequence|Mapping|Literal|Figure)"),
    # Types in public signatures that users never name; public ones are found by their public name.
    (r"py:class", r"roadworthy\.(?:\w+\.){2,}\w+"),
]

# ── gallery ──────────────────────────────────────────────────────────────────────────────────────────────────────────

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "min_reported_time": 10_000,
    "plot_gallery": True,
    "capture_repr": ("_repr_html_",),
    "image_scrapers": ("matplotlib", "site_tools.returned_figure"),
}

# ── look ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

html_theme = "pydata_sphinx_theme"
html_title = "Roadworthy"
html_static_path = ["_static"]
html_extra_path = ["sample-report.html"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    names = public_names()

    def resolve(app, env, node, contnode):
        """Link a private path, such as roadworthy.experiments.comparison.Comparison, to its public name."""
        public = names.get(re.sub(r"^~?", "", node.get("reftarget", "")))
        if node.get("refdomain") != "py" or public is None:
            return None
        python = env.get_domain("py")
        return python.resolve_any_xref(env, node["refdoc"], app.builder, public, node, contnode)[0][1]

    def plain(app, what, name, obj, options, lines):
        lines[:] = linked(listed(lines))

    def short(app, what, name, obj, options, signature, returned):
        return named(signature), returned

    def titled(app, *names_and_content):
        content = names_and_content[-1]
        content[0] = site_links(content[0])

    app.connect("source-read", titled)
    app.connect("include-read", titled)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", short)
    app.connect("autodoc-process-docstring", plain)
