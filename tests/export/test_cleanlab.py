import numpy as np
import pandas as pd
import pytest

import labelmend
from blobs import QUICK, blobs, plant
from handed_over import GIVEN, NEW, SURE, read_table

pytest.importorskip("cleanlab")
COLUMNS = ["is_label_issue", "label_score", "given_label", "predicted_label"]


@pytest.mark.filterwarnings("ignore")  # of the other library and what it imports
def test_columns_and_types_are_those_of_datalab():
    from cleanlab import Datalab
    from cleanlab.rank import find_top_issues

    features, true = blobs(90, spread=0.8)
    given, wrong = plant(true, 0.1)
    names = np.array(["ant", "bee", "cat"])[given]
    ours = pd.read_csv(labelmend.correct(features, names, expert=QUICK).export("cleanlab", "out.csv"), index_col="id")
    lab = Datalab(data={"y": names}, label_name="y", verbosity=0)
    lab.find_issues(pred_probs=np.eye(3)[true] * 0.94 + 0.02, issue_types={"label": {}})
    theirs = lab.get_issues("label")
    assert ours.columns.tolist() == theirs.columns.tolist() == COLUMNS
    assert [dtype.kind for dtype in ours.dtypes] == [dtype.kind for dtype in theirs.dtypes]
    assert ours.index.tolist() == theirs.index.tolist()
    assert (ours["given_label"] == theirs["given_label"]).all()
    assert (ours["is_label_issue"] == theirs["is_label_issue"]).mean() > 0.9
    assert set(find_top_issues(ours["label_score"].to_numpy(), top=5)) <= set(wrong)


def test_scores_are_about_the_given_label(make):
    rows = read_table(make().export("cleanlab", "out.csv"))
    assert [row["is_label_issue"] for row in rows] == [str(i in (1, 3, 6)) for i in range(8)]
    assert [row["given_label"] for row in rows] == [label or "" for label in GIVEN]
    assert [row["predicted_label"] for row in rows] == NEW
    expected = [SURE[0], 0.1, None, 0.4, SURE[4], SURE[5], 0.0, SURE[7]]
    for row, score in zip(rows, expected, strict=True):
        if score is None:
            assert row["label_score"] == ""
        else:
            assert float(row["label_score"]) == pytest.approx(score, abs=1e-6)


def test_a_picture_that_could_not_be_read_has_no_score(photos):
    assert read_table(photos.export("cleanlab", "out.csv"))[7]["label_score"] == ""


def test_labels_that_stay_are_no_issues_but_keep_their_low_scores(make):
    row = read_table(make().export("cleanlab", "out.csv", review="given"))[3]
    assert (row["is_label_issue"], row["predicted_label"]) == ("False", "ant")
    assert float(row["label_score"]) == pytest.approx(0.4, abs=1e-6)
