"""Records of arrays without reference counts, for kernels.

Numba counts references of arrays by atomic operations, and in a function of many arrays and branches it cannot remove
all of them: they took a fifth of the time. `uncounted` drops the pointer to the owner, so that there is nothing to
count. The caller must keep the owners alive as long as the result is in use; here they belong to the caller of the
compiled function.
"""

# mypy: disable-error-code="no-untyped-call"
# ruff: noqa: ANN401 (the objects that the compiler passes have no types)
from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The same array, number or tuple of such, compiled; arrays in it have no owner."""
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for position, part in enumerate(parts):
            old = builder.extract_value(value, position)
            value = builder.insert_value(value, _without_owners(context, builder, part, old), position)
    return value


def _uncounted(typing_context: Any, record: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owners(context, builder, signature.args[0], arguments[0])

    return record(record), generate


uncounted: Any = intrinsic(_uncounted)
"""`uncounted(record)`: the same array, or the same record of arrays, numbers and records, its arrays without owners."""
