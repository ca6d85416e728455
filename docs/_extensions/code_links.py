"""Code in the pages: `cp.audit` becomes a link to its place in the reference, and examples lose their last empty line.

In the sources both stay as they are: plain for GitHub, and with the empty line that ends an example for doctest.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PUBLIC = re.compile(r"cp\.([A-Za-z_][\w.]*)(\(.*\))?")


class LinkCode(SphinxTransform):
    """Wrap each such literal into a reference; a name that is not in the reference is a warning."""

    default_priority = 400

    def apply(self) -> None:
        if self.env.docname == "changelog":  # names as they were then
            return
        for literal in list(self.document.findall(nodes.literal)):
            matched = PUBLIC.fullmatch(literal.astext())
            if matched is None or isinstance(literal.parent, nodes.reference | pending_xref):
                continue
            link = pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=f"cloneproof.{matched[1]}",
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)
            link += literal


class TrimExamples(SphinxTransform):
    """Drop the empty line before the end of a block."""

    default_priority = 400

    def apply(self) -> None:
        for block in self.document.findall(nodes.literal_block):
            if block.astext().endswith("\n"):
                block.rawsource = block.astext().rstrip("\n")
                block[:] = [nodes.Text(block.rawsource)]  # equal to its source, or Sphinx would not colour it


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_transform(LinkCode)
    app.add_transform(TrimExamples)
    return {"parallel_read_safe": True}
