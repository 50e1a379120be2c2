import numpy as np
import pytest

from bench.zoo import limits
from bench.zoo.limits import NAMES, Limits, as_cells, choose_all, choose_one, left_out, replay

OPEN = {"mixing": 0.1, "agreement": 0.99, "disputed": 0.2, "linear": 0.9, "trees": 0.9, "overlap": 0.1}
RIGHT = {"given": 1.0, "pool": 2.0, "everything": 3.0, "preferred": 4.0}


def line(family="a", classes=3, right=RIGHT, joined=0.0, **verdict):
    methods = {name: {"right": value} for name, value in {**right, "labelmend": joined}.items()}
    said = {**OPEN, "classes": "apart", "adopted": 1, **verdict}
    return {
        "name": family,
        "kind": "clean",
        "family": family,
        "classes": classes,
        "methods": methods,
        "verdict": said,
    }


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        ({}, "everything"),
        ({"overlap": 0.36}, "given"),
        ({"overlap": 0.36, "classes_": 2}, "everything"),
        ({"agreement": 0.92}, "pool"),
        ({"disputed": 0.02}, "pool"),
        ({"linear": 0.54}, "pool"),  # must exceed .45 + .1
        ({"linear": 0.56}, "everything"),
        ({"trees": 0.3}, "pool"),
        ({"trees": 0.4}, "everything"),
        ({"mixing": 0.3}, "preferred"),
        ({"mixing": 0.3, "linear": 0.64}, "pool"),
        ({"mixing": 0.3, "trees": 0.49}, "pool"),
        ({"mixing": 0.51}, "pool"),
        ({"mixing": None}, "pool"),  # proves nothing
        ({"agreement": None}, "everything"),  # a run without a second vote
    ],
)
def test_the_rule_is_replayed_from_its_numbers(verdict, outcome):
    n_classes = verdict.pop("classes_", 3)
    cells = as_cells([line(classes=n_classes, **verdict)])
    assert replay(cells, Limits()) == [RIGHT[outcome]]


def test_lines_without_all_numbers_are_left_out():
    lacking = line()
    del lacking["methods"]["everything"]
    assert len(as_cells([line(), lacking, {**line(), "verdict": {}}, line(linear=None)])) == 1


def test_a_limit_is_chosen_on_the_other_families_only():
    """disputed .031 lets in where the limit is .03: good for two families, bad for the third, which cannot know."""
    good, bad = {**RIGHT, "everything": 12.0}, {**RIGHT, "everything": 1.0}
    lines = [line("a", right=good, disputed=0.031), line("b", right=good, disputed=0.031)]
    lines.append(line("c", right=bad, disputed=0.031))
    cells = as_cells(lines)
    found = choose_one(cells, "disputed", Limits())
    assert found.by_factor == pytest.approx((25 / 3, 25 / 3, 25 / 3, 2, 2))  # .033 lets nothing in: the pool's 2
    # a learns from b and c: 12 + 1 against 2 + 2; b likewise; c learns from a and b: lets in, and gets 1
    assert found.factors == (1.0, 1.0, 1.0)  # of equal factors the one nearest to 1
    np.testing.assert_allclose(found.right, [12, 12, 1])


def test_a_family_is_judged_with_what_the_others_chose_even_where_it_would_choose_otherwise():
    good, bad = {**RIGHT, "everything": 12.0}, {**RIGHT, "everything": 1.0}
    lines = [line("a", right=bad, disputed=0.031), line("b", right=bad, disputed=0.031)]
    lines.append(line("c", right=good, disputed=0.031))
    cells = as_cells(lines)
    found = choose_one(cells, "disputed", Limits())
    # a: b and c say 1 + 12 against 4, so let in: 1. c: a and b say 2 against 4, so keep: the pool's 2
    np.testing.assert_allclose(found.right, [1, 1, 2])
    assert found.factors == (1.0, 1.0, 1.1)
    together = choose_all(cells, Limits())
    assert together.right[2] == 2


def test_all_limits_are_tried_and_a_single_family_cannot_be_left_out():
    cells = as_cells([line("a"), line("b")])
    assert [one.name for one in left_out(cells)] == [*NAMES, "all of them"]
    assert left_out(as_cells([line("a"), line("a")])) == []
    single = as_cells([line("a", agreement=None), line("b", agreement=None)])
    assert "disagreement" not in [one.name for one in left_out(single)]


def test_the_table_says_whether_the_replayed_rule_is_the_runs_rule():
    lines = [line("a", joined=3.0), line("b", joined=3.0), line("c", joined=9.0)]
    cells = as_cells(lines)
    assert limits.agreeing(cells, replay(cells, Limits())) == 2
    table = limits.limits_table(lines)
    assert "in 2 of 3 cells" in " ".join(table.notes)
    rows = dict(table.rows)
    assert list(rows) == [*NAMES, "all of them"]
    assert rows["overlap"][0] == 0.35
    assert rows["overlap"][7].value == 0


def test_what_letting_in_gained_is_counted():
    lines = [line("a", joined=3.0), line("b", joined=1.0), line("c", joined=2.1), line("d", adopted=0)]
    table = limits.let_in(lines)
    assert [name for name, _ in table.rows] == ["b:clean", "c:clean", "a:clean"]  # the worst first
    assert table.notes[0].startswith("Let in in 3 cells: better in 1, worse in 1, within half a point in 1;")
    assert "+1.1 and -1.0" in table.notes[0]
    counts = dict(limits.verdicts(lines).rows)
    assert counts == {"apart": [4, 4], "the ensemble was let in": [3, 3]}
