import numpy as np
import pytest

from labelmend.errors import DataError
from labelmend.inputs.labels import read_labels
from labelmend.inputs.pred_probs import read_pred_probs, read_prob_files

P = np.array([[0.1, 0.9], [0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
IDS = np.array(["r0", "r1", "r2", "r3"])
LABELS = read_labels(["b", "a", "a", "b"])


def write_csv(path, header, rows):
    path.write_text("\n".join(",".join(map(str, line)) for line in [header, *rows]) + "\n")


def read(paths, **named):
    return read_pred_probs(read_prob_files(paths, **named), LABELS)[0].models


def test_every_kind_of_file_gives_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    np.save(tmp_path / "one.npy", P)
    np.savez(tmp_path / "two.npz", P, labels=np.arange(4))
    write_csv(tmp_path / "three.csv", ["b", "a"], P[:, ::-1])
    parquet.write_table(pyarrow.table({"b": P[:, 1], "a": P[:, 0]}), tmp_path / "four.parquet")
    found = read([tmp_path / name for name in ("one.npy", "two.npz", "three.csv", "four.parquet")])
    assert list(found) == ["one", "two", "three", "four"]
    for values in found.values():
        assert values == pytest.approx(P)


def test_an_npz_may_hold_several_models(tmp_path):
    np.savez(tmp_path / "nets.npz", net=P, other=P)
    assert list(read([tmp_path / "nets.npz"])) == ["net", "other"]


def test_rows_are_matched_by_id_and_columns_with_a_role_are_no_classes(tmp_path):
    order = [2, 0, 3, 1]
    write_csv(tmp_path / "P.csv", ["", "name", "label", "a", "b"], [[i, IDS[i], "x", *P[i]] for i in order])
    found = read([tmp_path / "P.csv"], id_column="name", ids=IDS, not_classes=["label"])
    assert found["P"] == pytest.approx(P)


@pytest.mark.parametrize(
    ("ids", "named"), [(["r0", "r1", "r2", "r9"], "r3"), (["r0", "r1", "r2", "r3", "r3"], "unique")]
)
def test_ids_that_do_not_match_are_refused(tmp_path, ids, named):
    write_csv(tmp_path / "P.csv", ["name", "a", "b"], [[name, 0.5, 0.5] for name in ids])
    with pytest.raises(DataError, match=named):
        read([tmp_path / "P.csv"], id_column="name", ids=IDS)


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([None, "x"], dtype=object))
    write_csv(tmp_path / "words.csv", ["a", "b"], [["x", 1]])
    (tmp_path / "P.txt").write_text("0.5 0.5")
    (tmp_path / "empty.csv").write_text("a,b\n")
    np.savez(tmp_path / "flat.npz", P=P[0])
    for name in ("objects.npy", "words.csv", "P.txt", "flat.npz", "nowhere.npy", "empty.csv"):
        with pytest.raises(DataError):
            read([tmp_path / name])
    np.save(tmp_path / "P.npy", P)
    with pytest.raises(DataError, match="twice"):
        read([tmp_path / "P.npy", tmp_path / "P.npy"])
