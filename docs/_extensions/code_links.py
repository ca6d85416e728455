"""Code such as `cp.audit` in the text becomes a link to its place in the reference; in the sources it stays plain."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PUBLIC = re.compile(r"cp\.([A-Za-z_][\w.]*)(\(.*\))?")


class LinkCode(SphinxTransform):
    """Wrap each such literal into a reference that is resolved where the name is documented, and is quiet elsewhere."""

    default_priority = 400

    def apply(self) -> None:
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
                refwarn=False,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_transform(LinkCode)
    return {"parallel_read_safe": True}
