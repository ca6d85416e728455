"""Read and write market files (TOML) without loss.

Python's parser keeps no positions. A second pass over the text finds the line of a key, so that errors can name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import tomli_w

from cloneproof._lib.checks import Either, WholeRange, key_names, toml_tables
from cloneproof._lib.files import write_whole
from cloneproof.errors import MarketError, MarketFileError, brief, did_you_mean
from cloneproof.market.delays import DELAYS_FORM, DelaysName
from cloneproof.market.market import GAP, HORIZON, ORIGINALS, SHARE, Agent, Ends, Market, checked_market
from cloneproof.market.positions import POSITIONS_FORM
from cloneproof.market.priors import PRIOR_FORMS
from cloneproof.market.rewards import family_forms, reward_family
from cloneproof.market.segments import FRACTION, LAW_FORMS, SegmentPriors, law_from_dict

LAW = Either([*PRIOR_FORMS.values(), *LAW_FORMS.values()])
AGENT = {"name": str, "originals": ORIGINALS}
AGENT_FORMS = Either([{**AGENT, "prior": Either([LAW, [LAW]])}, {**AGENT, **LAW_FORMS[SegmentPriors]}])
MARKET_FORM: Mapping[str, Any] = {
    "horizon": HORIZON, "share?": SHARE, "rewards?": Either(family_forms()), "gap?": GAP, "agent_gap?": GAP,
    "max_originals?": WholeRange(), "delays?": Either([DelaysName, DELAYS_FORM]), "ends?": Ends,
    "positions?": POSITIONS_FORM, "segments?": {...: FRACTION}, "agents": [AGENT_FORMS],
}  # fmt: skip


def load_market(path: str | Path) -> Market:
    """Read a market file.

    Parameters
    ----------
    path : str or Path
        A TOML file with `horizon`, `share`, `rewards` and `[[agents]]`; a table `[segments]` has the fraction of the
        rounds in each segment, and `segment_priors` of an agent a prior for each.

    Examples
    --------
    >>> import tempfile
    >>> from cloneproof import Agent, Market, Point, load_market, save_market
    >>> market = Market([Agent("ana", 2, Point(0.5))], horizon=100, share=0.4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_market(market, f"{folder}/market.toml")
    ...     load_market(f"{folder}/market.toml") == market
    True
    """
    if not isinstance(path, str | PathLike):
        raise MarketFileError(f"expected the path of a market file, got {brief(path)}; give its name as text")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as problem:
        raise MarketFileError(f"expected a readable market file, got {path}: {problem}; check the path") from None
    return market_from_toml(text, str(path))


def save_market(market: Market, path: str | Path) -> None:
    """Write a market file, whole or not at all.

    Parameters
    ----------
    market : Market
        What to write; `load_market` reads an equal one.
    path : str or Path
        Where to write it; a file that is there is replaced.
    """
    write_whole(path, market_to_toml(checked_market(market)), MarketFileError)


def market_to_toml(market: Market) -> str:
    """Return the market as TOML text."""
    top: dict[str, Any] = {"horizon": market.horizon, "share": market.share, "rewards": market.family.to_dict()}
    agents = []
    for agent in market.agents:
        own: dict[str, Any] = {"name": agent.name, "originals": agent.originals}
        if isinstance(agent.prior, tuple):
            agents.append(own | {"prior": [law.to_dict() for law in agent.laws]})
        else:
            law = agent.laws[0].to_dict()
            agents.append(own | (law if "segment_priors" in law else {"prior": law}))
    delays = {} if market.delays == "none" else {"delays": market.late.to_dict() if market.late else market.delays}
    ends = {} if market.ends == "at-horizon" else {"ends": market.ends}
    segments = {"segments": dict(market.segments)} if market.segments else {}
    positions = {} if market.positions is None else {"positions": market.positions}
    return tomli_w.dumps(top | dict(market.declared) | delays | ends | positions | segments | {"agents": agents})


def market_from_toml(text: str, source: str = "the text") -> Market:
    r"""Return the market that a market file describes.

    >>> market_from_toml('horizon = 9\n[[agents]]\nname = "ana"\noriginals = 1\nprior = { point = 0.5 }').horizon
    9
    """
    data = toml_tables(text, source, MarketFileError)
    lines = _Lines(text, source)
    _check_keys(data, MARKET_FORM, "the market", lines, 0)
    if not isinstance(data["agents"], list) or not all(isinstance(agent, dict) for agent in data["agents"]):
        raise MarketFileError(
            f"{lines.at('agents', 0)}: expected [[agents]] tables, got {brief(data['agents'])}; use [[agents]]"
        )
    agents = [_agent(agent, number, lines) for number, agent in enumerate(data["agents"], start=1)]
    with _blame("rewards", data, lines, 0):
        rewards = reward_family(data.get("rewards", "bernoulli"))
    with _blame(None, data, lines, 0):
        return Market(**{**data, "agents": agents, "rewards": rewards})


def _agent(data: Mapping[str, Any], number: int, lines: _Lines) -> Agent:
    one_prior, by_segment = AGENT_FORMS
    key = "segment_priors" if "segment_priors" in data else "prior"
    _check_keys(data, one_prior if key == "prior" else by_segment, f"agent {number}", lines, number)
    prior = {key: data[key]} if key == "segment_priors" else data[key]
    with _blame(key, data, lines, number):
        parsed = [law_from_dict(p) for p in prior] if isinstance(prior, list) else law_from_dict(prior)
    with _blame(None, data, lines, number):
        return Agent(data["name"], data["originals"], parsed)


def _check_keys(data: Mapping[str, Any], form: Mapping[str, Any], owner: str, lines: _Lines, table: int) -> None:
    keys = key_names(form)
    for key in data:
        if key not in keys:
            raise MarketFileError(
                f"{lines.at(key, table)}: unknown key {key!r} of {owner}; {did_you_mean(key, keys)}"
                f"known are {', '.join(keys)}"
            )
    for key, needed in keys.items():
        if needed and key not in data:
            raise MarketFileError(f"{lines.at(None, table)}: missing key {key!r} of {owner}; add a line {key} = ..")


@contextmanager
def _blame(key: str | None, data: Mapping[str, Any], lines: _Lines, table: int) -> Iterator[None]:
    """Add the line to an error: that of the unknown word, of `key`, or of the key that the message names."""
    try:
        yield
    except MarketError as problem:
        unknown = re.search(r"unknown (?:key|parameter)[a-z ]* '([^']*)'", str(problem))
        spoken_of = next((k for k in sorted(data, key=len, reverse=True) if k in str(problem)), None)
        where = lines.at(unknown[1] if unknown else key or spoken_of, table)
        raise MarketFileError(f"{where}: {problem}") from None


class _Lines:
    """Lines of keys and tables: table 0 is the top, table k the k-th [[agents]]."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.lines = text.splitlines()
        self.tables = [0] + [k for k, line in enumerate(self.lines) if re.match(r"\s*\[\[\s*agents\s*\]\]", line)]

    def at(self, key: str | None, table: int) -> str:
        """Return `file, line n` of the key in that table, or of the table if the key is not found."""
        if table >= len(self.tables):  # agents written as an inline array
            table = 0
        start = self.tables[table]
        stop = self.tables[table + 1] if table + 1 < len(self.tables) else len(self.lines)
        if key is not None:
            pattern = re.compile(rf"""(?:^|[{{,\s\[.])["']?{re.escape(key)}["']?\s*[=\].]""")
            for number in range(start, stop if table else len(self.lines)):
                if pattern.search(self.lines[number].split("#")[0]):
                    return f"{self.source}, line {number + 1}"
        return f"{self.source}, line {start + 1}"
