"""When titles name one item: ten kinds of changes, variants, remakes, codes."""

import pytest

from cloneproof.analysis.copying.alike import duplicates
from cloneproof.analysis.copying.matching import Matcher
from cloneproof.analysis.copying.records import ArmRecord
from planted_titles import CHANGES, recognised

LAMPS = (
    "Touch Lamp", "Touch Lamp - NEW", "Touch Lamp 2025", "Touch Lamp (free shipping)", "NEW Touch Lamp", "touch lamp",
    "Lamp Touch", "Touch Lamp 2", "TOUCH LAMP!!!", "Touch Lamp - best price", "Touch Lamp \U0001f525", "Tuoch Lamp",
)  # fmt: skip
TEAPOTS = (
    "Ceramic Teapot with Infuser", "Ceramic Teapot w/ Infuser", "Teapot ceramic with infuser SALE",
    "Ceramic Teapot with Infuser #3", "Ceramic Tea Pot with Infuser",
)  # fmt: skip
OTHERS = (
    "Desk Lamp", "Floor Lamp", "Lamp", "Organic mug size S", "Organic mug size M", "Iron Teapot", "Glass Chess Set",
    "Running Shoe 42", "Running Shoe 43", "Wool Shirt", "Wool Skirt",
)  # fmt: skip


def listed(owned):
    """Titles of each group that is not equal to the letter, by (agent, title)."""
    records = [ArmRecord(agent, f"x{k}", {"title": text}) for k, (agent, text) in enumerate(owned)]
    return [[owned[int(arm[1:])] for _, arm in one.arms] for one in duplicates(records, ["title"]) if not one.equal]


def test_lamps_teapots_and_a_second_account_are_recognised_and_nothing_else():
    owned = [("lampking", text) for text in LAMPS] + [("tea", text) for text in TEAPOTS]
    owned += [("ana", "Walnut Chess Set"), ("bo", "Chess Set Walnut (free delivery)")]
    owned += [(f"shop {k}", text) for k, text in enumerate(OTHERS)]
    groups = {frozenset(group) for group in listed(owned)}
    assert groups == {frozenset(owned[:12]), frozenset(owned[12:17]), frozenset(owned[17:19])}


@pytest.mark.parametrize("kind", CHANGES)
def test_ten_kinds_of_changed_titles(kind):
    found, wrong, right = recognised(kind, 1, items=80, copied=20)
    assert found >= (17 if kind == "abbreviation" else 20)
    assert wrong <= 0.05 * (wrong + right)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("King Kong (1933)", "King Kong (1976)", False),  # remakes
        ("King Kong", "King Kong (1976)", True),
        ("Dead Man Walking (1995)", "Walking Dead, The (1995)", False),
        ("Toy Story (1995)", "Toy Story 2 (1999)", False),
        ("Organic mug size S", "Organic mug size M", False),  # variants
        ("Organic mug", "Organic mug, red", False),
        ("Phone case 12", "Phone case 13", False),
        ("Shampoo Herbal 500 ml", "Shampoo Herbal 250 ml", False),
        ("c0-0", "c1-0", False),  # codes
        ("AB-1 x", "AB-1 y", False),
        ("Professional Hair Dryer", "Prof. Hair Dryer", True),
        ("Café Crème Cup", "cafe creme cup", True),
        ("Lamp", "Desk Lamp", False),
        ("USB cable 1.5 m", "USB cable 5 m", False),  # decimals are whole
        ("1.5 m USB cable", "5 m USB cable", False),
        ("USB cable .5 m", "USB cable 5 m", False),
        ("USB cable 1,5 m", "USB cable 1.5 m", True),
        ("Touch Lamp 2.2", "Touch Lamp 3.2", False),
        ("Touch Lamp v2.2", "Touch Lamp v3.2", False),
        ("Scented candle 2.5 cm", "Scented candle 2 cm", False),
        ("Puma evoPOWER 2.2 FG", "Puma evoPOWER 3.2 FG", False),
        ("Touch Lamp No. 2.5 cm", "Touch Lamp No. 5 cm", False),
        ("Oat drink 1.5%", "Oat drink 1.8%", False),
        ("Picture Frame 10 x 10 cm", "Picture Frame 10 x 15 cm", False),  # each as often as it is there
        ("Copper pipe \u00bd inch", "Copper pipe 2 inch", False),
        ("Copper pipe \u00bd inch", "Copper pipe 1/2 inch", True),
        ("Phone case 12/13", "Phone case 12", False),
        ("Jazz concert 12.05.2024", "Jazz concert 05.12.2024", False),  # dates
        ("Jazz concert 2024-05-12", "Jazz concert 2024-12-05", False),
        ("Steel boot 2238-STC sole 2227-STC", "Steel boot 2227-STC sole 2238-STC", False),  # codes that are swapped
        ("Phone case A-12 B-13", "Phone case A-13 B-12", False),
        ("Phone 12 case 128GB", "128GB case for Phone 12 - NEW", True),
        ("Phone 12 128GB case", "128GB Phone 12 case", True),
    ],
)
def test_pairs_that_a_person_would_decide_at_once(one, other, same):
    for pair in ((one, other), (other, one)):
        for owners in (["ana", "ana"], ["ana", "bo"]):
            links = Matcher(pair, [{owner} for owner in owners]).links()
            assert any(link.same for link in links) is same


def test_codes_of_many_advertisers_are_not_alike():
    codes = [ArmRecord(f"c{k}", f"c{k}-{j}", {"id": f"c{k}-{j}"}) for k in range(25) for j in range(3)]
    assert duplicates(codes, ["id"]) == ()
