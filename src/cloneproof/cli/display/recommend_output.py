"""A recommendation on a terminal: the choice in sentences, then a table."""

from __future__ import annotations

from cloneproof.advice.recommendation import AssessedMechanism, Recommendation
from cloneproof.advice.words import (
    choice_sentence,
    exploring_words,
    gain_words,
    number,
    price_sentence,
    regret_words,
    wrong_rows,
)
from cloneproof.cli.display.output import new_table, note, print_table


def show_recommendation(found: Recommendation, source: str | None) -> None:
    """Print it."""
    market = found.market
    name = (
        source or f"{len(market.agents)} providers, up to {market.most_originals} items each, {market.horizon:,} rounds"
    )
    print(choice_sentence(found))
    if found.advice:
        print(found.advice)
    if found.ranked:
        print(found.choice.promise)
        print("Parameters: " + ", ".join(f"{key}={value}" for key, value in found.choice.parameters.items()))
    print("Price of honesty: " + price_sentence(found))
    table = new_table(f"Clone-proof for {name}", "mechanism", "regret", "of random play", "exploring", "copies gain")
    for each in found.ranked:
        table.add_row(*_cells(each, found.random_regret))
    if found.ranked:
        print_table(table)
    if found.ranked and found.choice.wrong:
        wrong = new_table("If a declaration is wrong", "truth", "regret", "a provider gains", right=1)
        for row in wrong_rows(found.choice):
            wrong.add_row(*row)
        print_table(wrong)
    for mechanism, why in found.others.items():
        note(f"{mechanism} is not among them: {why}")
    for text in found.notes:
        note(text)


def _cells(each: AssessedMechanism, at_random: float) -> tuple[str, ...]:
    part = f"{each.regret.value / at_random:.1%}" if at_random > 0 else number(0.0)
    return each.name, regret_words(each.regret), part, exploring_words(each), gain_words(each.gain)
