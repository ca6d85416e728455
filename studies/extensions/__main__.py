"""The figures of docs/textbook/extensions.md: `python studies/extensions [--quick] [FOLDER]`.

Five questions beyond the theorem, each answered by exact engines; prints the tables behind the figures. About five
minutes, or seconds with --quick, which tries fewer markets.
"""

from __future__ import annotations

import sys
from pathlib import Path

import asymmetric
import contests
import smaller_m
import splitting
import withholding

PAGES = Path(__file__).parents[2] / "docs" / "textbook" / "figures"
STUDIES = {"a": smaller_m, "b": contests, "c": asymmetric, "d": withholding, "e": splitting}


def main(arguments: list[str]) -> None:
    """Run all five, or those whose letters are given."""
    quick = "--quick" in arguments
    letters = [word for word in arguments if word in STUDIES] or list(STUDIES)
    folders = [word for word in arguments if word not in STUDIES and not word.startswith("--")]
    folder = Path(folders[0]) if folders else PAGES
    folder.mkdir(parents=True, exist_ok=True)
    for letter in letters:
        print(f"({letter}) {(STUDIES[letter].__doc__ or '').splitlines()[0][4:]}")
        for row in STUDIES[letter].main(quick, str(folder))["rows"]:
            print("  ", row)


if __name__ == "__main__":
    main(sys.argv[1:])
