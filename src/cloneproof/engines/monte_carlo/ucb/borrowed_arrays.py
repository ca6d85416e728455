"""Arrays without reference counts, for kernels.

Numba counts references of arrays by atomic operations, and in a function of many arrays and branches it cannot remove
all of them: they took a fifth of the time. A borrowed array has no owner to count for. Whoever borrows must see to it
that the owner outlives the loan; here the arrays belong to the caller of the compiled function.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing_context, array):
    """The same array, its owner forgotten."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate
