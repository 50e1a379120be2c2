import pytest
from made import CLASSES

from labelmend.review.desk import Desk, speed
from labelmend.review.guard import Refused


@pytest.fixture
def desk(run):
    opened = Desk(run)
    yield opened
    opened.close()


@pytest.fixture
def still_desk(still_server):
    return still_server.desk


def choice(sample, label=None, kind="label", seen=0):
    return {"sample": sample, "kind": kind, "seen": seen, **({} if label is None else {"label": label})}


def body(*choices, request="r"):
    return {"request": request, "choices": list(choices)}


def refused(call, *arguments):
    with pytest.raises(Refused) as caught:
        call(*arguments)
    return caught.value.status


def test_the_page_learns_what_the_run_is(desk):
    about = desk.about()
    assert about["classes"] == CLASSES
    assert about["kind"] == "pictures"
    assert about["statuses"] == {"review": 24, "corrected": 4, "filled": 1, "kept": 7}
    assert about["run"] == "run"


def test_the_queue_comes_with_all_evidence(desk):
    answer = desk.upcoming({"count": "3"})
    assert [item["sample"] for item in answer["items"]] == [0, 1, 2]
    assert answer["items"][1]["neighbors"][0]["sample"] == 2
    assert answer["progress"]["total"] == 24
    assert answer["undo"] is None


def test_a_decision_changes_the_progress(desk):
    answer = desk.decide({"tab": "one"}, body(choice(0, 2)))
    assert [(made["sample"], made["label"]) for made in answer["made"]] == [(0, 2)]
    assert answer["progress"]["decided"] == 1
    assert answer["undo"] == {"step": 1, "count": 1, "sample": 0}


def test_a_tab_undoes_its_own_and_leaves_those_of_tabs_in_use(desk):
    desk.decide({"tab": "one"}, body(choice(0, 2), request="a"))
    desk.decide({"tab": "two"}, body(choice(1, 2), request="b"))
    assert desk.state({"tab": "one"})["undo"]["sample"] == 0
    assert desk.state({"tab": "two"})["undo"]["sample"] == 1
    assert desk.state({"tab": "three"})["undo"] is None
    desk._tabs.clear()  # as after a minute, or after the browser was killed
    assert desk.state({"tab": "three"})["undo"]["sample"] == 1


def test_what_another_tab_decided_is_told_and_not_overwritten(desk):
    desk.decide({"tab": "one"}, body(choice(0, 2), request="a"))
    answer = desk.decide({"tab": "two", "since": "0"}, body(choice(0, 1), request="b"))
    assert answer["made"] == []
    assert answer["refused"][0]["stands"]["label"] == 2
    assert answer["changes"][0]["sample"] == 0
    answer = desk.decide({"tab": "two"}, body(choice(0, 1, seen=answer["refused"][0]["stands"]["number"]), request="c"))
    assert answer["made"][0]["label"] == 1


def test_undo_takes_back_a_step(desk):
    desk.decide({"tab": "one"}, body(choice(0, 2), choice(1, 2), request="a"))
    answer = desk.undo({"tab": "one"}, {"request": "b", "step": 1})
    assert sorted(made["sample"] for made in answer["made"]) == [0, 1]
    assert answer["progress"]["decided"] == 0
    assert answer["undo"] is None


def test_the_grid_holds_one_pair_and_the_progress_of_all(desk):
    answer = desk.grid({"pair": "0,1", "count": "10"})
    assert {(item["given"], item["suggestion"]) for item in answer["items"]} == {(0, 1)}
    assert answer["progress"]["total"] == 24


def test_pairs_are_those_of_the_filter(desk):
    pairs = desk.pairs({"status": "corrected"})["pairs"]
    assert sum(pair["open"] for pair in pairs) == 4


def test_rows_come_with_those_of_the_nearest(rows_run):
    desk = Desk(rows_run)
    item = desk.one(4)
    assert item["row"][:2] == [("name", "row 4"), ("width", "4.5")]
    assert [row[1] for row in item["neighbor_rows"]] == [("width", "5.5"), ("width", "6.5"), ("width", "7.5")]
    assert desk.about()["kind"] == "rows"
    desk.close()


def test_without_originals_the_page_is_told_why(bare_run):
    desk = Desk(bare_run)
    assert desk.about()["kind"] == "none"
    assert "arrays" in desk.about()["reason"]
    assert desk.one(0)["row"] == []
    assert desk.picture(0, "small") is None
    desk.close()


@pytest.mark.parametrize(
    "query",
    [
        {"status": "nonsense"}, {"status": ""}, {"state": "maybe"}, {"label": "3"}, {"label": "-1"}, {"given": "-2"},
        {"suggested": "x"}, {"after": "36"}, {"after": "1.5"}, {"count": "201"}, {"since": "-5"}, {"tab": "x" * 101},
        {"probability": "1"}, {"probability": "0.9-0.1"}, {"probability": "0-nan"}, {"certainty": "0-2"},
        {"label": "9" * 30}, {"count": "²"},
    ],
)  # fmt: skip
def test_an_address_with_anything_wrong_is_refused(still_desk, query):
    assert refused(still_desk.upcoming, query) == 400


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({}, 400),
        ({"request": "r"}, 400),
        ({"request": 5, "choices": [choice(0, 1)]}, 400),
        ({"request": "", "choices": [choice(0, 1)]}, 400),
        ({"request": "x" * 101, "choices": [choice(0, 1)]}, 400),
        (body(), 400),
        (body(*[choice(0, 1)] * 201), 400),
        (body(7), 400),
        (body(choice(0, 1), choice(0, 2)), 400),
        (body(choice(36, 1)), 404),
        (body(choice(-1, 1)), 404),
        (body(choice(True, 1)), 400),
        (body(choice("0", 1)), 400),
        (body(choice(0, 3)), 400),
        (body(choice(0, -1)), 400),
        (body(choice(0, "cat")), 400),
        (body(choice(0)), 400),
        (body(choice(0, 1, kind="undo")), 400),
        (body(choice(0, 1, kind=["label"])), 400),
        (body({"sample": 0, "kind": "label", "label": 1}), 400),
        (body(choice(0, 1, seen=1.5)), 400),
        (body(choice(0, 1, seen=2**70)), 400),
    ],
)
def test_a_body_with_anything_wrong_is_refused_whole(still_desk, wrong, status):
    assert refused(still_desk.decide, {}, wrong) == status
    assert still_desk.decisions.standing.last == 0


@pytest.mark.parametrize("wrong", [{"request": "r"}, {"request": "r", "step": "1"}, {"step": 1}])
def test_an_undo_with_anything_wrong_is_refused(still_desk, wrong):
    assert refused(still_desk.undo, {}, wrong) == 400


def test_undo_of_what_was_never_done_does_nothing(desk):
    assert desk.undo({}, {"request": "r", "step": 99})["made"] == []


@pytest.mark.parametrize("sample", [-1, 36, 10**9])
def test_unknown_samples_are_not_there(still_desk, sample):
    assert refused(still_desk.one, sample) == 404
    assert refused(still_desk.picture, sample, "small") == 404


def test_speed_leaves_pauses_out():
    assert speed([100, 98, 96, 94], 101) == pytest.approx(30)
    assert speed([100, 98, 96, 94, -9000, -9002], 101) == pytest.approx(30)
    assert speed([100, 98, 96, 94], 1000) is None
    assert speed([100, 98], 101) is None
    assert speed([], 101) is None
    assert speed([100, 100, 100, 100], 101) is None


def test_what_was_decided_is_there_when_the_desk_opens_again(run):
    first = Desk(run)
    first.decide({"tab": "one"}, body(choice(0, 2)))
    first.close()
    second = Desk(run)
    assert second.upcoming({"count": "1"})["items"][0]["sample"] == 1
    assert second.state({"tab": "new"})["undo"]["sample"] == 0
    second.close()
