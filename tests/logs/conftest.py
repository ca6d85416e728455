"""What tests of the quick ways through files share."""

import pytest

from cloneproof.logs.reader import sources


@pytest.fixture(scope="module")
def one_connection():
    """One database for all of the small files: to open it takes longer than to read them."""
    known = sources.open_connection(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "open_connection", lambda _: known)
        yield patch
