"""How `make docs` builds the site: Sphinx reads the Markdown of this folder and the docstrings of the package.

Nothing is fetched while it is built or read: no fonts, scripts or inventories from elsewhere.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from sphinx.application import Sphinx

from cloneproof import __version__
from cloneproof.report.page import playground

project = "cloneproof"
author = "The cloneproof developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "public_names",
    "command_line",
    "type_index",
    "code_links",
    "two_columns",
    "llms_txt",
]
exclude_patterns = ["_extensions"]

# The pages are plain Markdown, so that GitHub shows them and pytest runs their examples.
myst_heading_anchors = 3
myst_links_external_new_tab = False

# Docstrings: NumPy's sections; a word in single backticks is code, as in Markdown.
default_role = "code"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes are described once, in the docstring of their class
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_display_short_literal_types = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

# Every link is checked. Types of annotations are not links that somebody wrote, and many of them are private.
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]

html_theme = "furo"
html_title = f"cloneproof {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"


def setup(app: Sphinx) -> None:
    """Write the page that play.md shows."""
    page = Path(app.outdir) / "playground.html"
    app.connect("build-finished", lambda app, problem: page.write_text(playground(), "utf-8"))
