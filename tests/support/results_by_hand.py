"""Results of every kind, made without long computations, for tests of what shows them."""

from dataclasses import replace

import cloneproof as cp
from cloneproof.advice.recommendation import (
    AssessedMechanism,
    CheapestSeasons,
    PlatformOption,
    Recommendation,
    WrongDeclaration,
)
from cloneproof.boards.copies import BoardCopies, LikeModels, LikePair
from cloneproof.logs.copy_worth import CopyWorth
from cloneproof.logs.drawn import DrawnCost
from cloneproof.logs.faults import Fault
from cloneproof.logs.policy_audit import PolicyAudit
from cloneproof.logs.study import study_log
from support.audits_by_hand import creators_audit
from support.clocks import ticking

COIN = cp.Discrete([0, 1], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo & <i>", 1, cp.Point(0.6))], horizon=400)
MECHANISM = cp.mechanism("h-etc-r", agent_rounds=24, arm_rounds=12)


def regret(value):
    return cp.results.Estimate(value, value / 20, "confidence", "by hand")


def assessed(made, needs="", **more):
    return AssessedMechanism(
        made, regret(60.0), "clone-proof", 0.0, 0.2, (80.0, 90.0), f"Copies do not pay under {made.name}.", needs,
        "Few items are shown.", **more,
    )  # fmt: skip


def recommendation():
    """With everything that one can say."""
    wrong = (WrongDeclaration("rates are twice as high", regret(70.0), 0.3, "computed", usual=True),)
    choice = assessed(cp.mechanism("reservoir", rounds=5, draws=3, threshold=4), wrong=wrong, account_gain=regret(9.0))
    cheaper = assessed(cp.mechanism("uniform-etc", arm_rounds=3), needs="the gap is right", wrong=wrong)
    ends = [PlatformOption("the season ends", end, "reservoir", regret(60.0), 0.0, True) for end in ("here", "there")]
    return Recommendation(
        MARKET, (choice, cheaper), {"h-ucb": "copies pay"}, 200.0, True, "", ("A note.",),
        seconds=1.5, account_floor=3.0, seasons=CheapestSeasons(1e3, 4000, 400, 0.1, 300.0), settled=True,
        candidates=("reservoir",), options=tuple(ends),
    )  # fmt: skip


def nothing_recommended():
    return Recommendation(MARKET, (), {"etc": "copies pay"}, 200.0, False, "Use more rounds.")


def log_study():
    """Three copies of one item, found in the log; all other answers by hand."""
    rows = {"agent": [], "arm": [], "title": [], "impressions": [], "clicks": []}
    for name, rates in {"ana": (0.01, 0.0135), "bo": (0.0182, 0.0246), "<cy>": (*[0.0332] * 3, 0.0448)}.items():
        for number, rate in enumerate(rates):
            values = (name, f"{name}-{number}", f"{name} sells {rate}", 60_000, round(60_000 * rate) + number)
            for column, value in zip(rows, values, strict=True):
                rows[column].append(value)
    log = replace(cp.read_log(rows, same=["title"]), faults=(Fault("no arm", 2, "row", "in row 7"),))
    with ticking(0.01):
        found = study_log(log, lambda market: cp.mechanism("etc", arm_rounds=5), "etc", seconds=0.5)
    copier, first, second = found.owners
    joint = replace(first, name="ana + bo", accounts=("ana", "bo"), originals=first.originals + second.originals)
    attack = creators_audit()
    return replace(
        found,
        owners=(joint, copier),
        worth=(CopyWorth(copier, 500, *map(regret, (9.0, 7.0, 2.0))), CopyWorth(copier, 500, remark="no time")),
        verdict=PolicyAudit(attack, attack.worst, "copies of one item"),
        recommendation=recommendation(),
        cost=DrawnCost(regret(20.0), regret(0.05)),
    )


def board_study():
    """Six models of four producers; one question is left."""
    table = {
        "model": list("pqrstu"), "organization": ["ana", "ana", "bo", "bo", "cy", "<di>"],
        "score": [1200, 1150, 1190, 1100, 1050, 1010], "votes": [500] * 6,
    }  # fmt: skip
    return replace(cp.boards.study_board(cp.boards.read_board(table)), left=("a question",))


def board_copies():
    """A pair that looks like one, of two producers, and what it gains."""
    pair = LikePair(("p", "q"), ("ana", "<di>"), "none declared", 0.98, 4e9, ("t0", "t1", "t2"), ("t3",))
    table = cp.boards.read_scores({"model": list("pqr"), **{f"t{k}": [1.5, 1.5, 2.0 + k] for k in range(5)}})
    return BoardCopies(table, 0.05, 3, (pair,), (LikeModels(("p", "q"), (1, 2), 0.5),))


def results(folder):
    """Results of each kind by name; `folder` is empty."""
    grid = {"market": MARKET, "mechanism": MECHANISM, "copies": [{}, {"ana": (2, 1)}]}
    study = log_study()
    return {
        "log": study.log,
        "log study": study,
        "board study": board_study(),
        "board copies": board_copies(),
        "same items": cp.same_items(
            {"title": ["Stone mug", "NEW: stone mug"], "shop": ["ana", "ana"]}, "title", "shop"
        ),
        "audit": creators_audit(),
        "recommendation": recommendation(),
        "nothing recommended": nothing_recommended(),
        "evaluation": cp.evaluate(MARKET, MECHANISM),
        "gain": cp.gain(MARKET, MECHANISM, "ana", (2, 1), search=cp.Search(runs=20)),
        "equilibrium": cp.equilibrium(MARKET, MECHANISM),
        "sweep": cp.sweep(grid, folder / "store", workers=1),
    }
