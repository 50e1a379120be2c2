import shutil

import numpy as np
import pytest

from bench.paper.clothing1m import read_clothing1m
from labelmend.errors import DataError
from labelmend.inputs.pictures.cache import decode
from photo_sets import CLOTHES, change, clothing1m, food101n


@pytest.fixture
def folder(tmp_path):
    return clothing1m(tmp_path / "clothing1M")


def test_lists_and_labels_are_those_of_the_files(folder):
    found = read_clothing1m(folder)
    assert (len(found.noisy), len(found.clean), len(found.test)) == (24, 6, 6)
    assert found.noisy.classes == CLOTHES
    assert found.noisy.keys[3] == "images/3/3/noisy_train,3.jpg"
    assert found.noisy.labels[:6].tolist() == [1, 2, 0, 1, 1, 2]  # four are one class too far
    assert found.clean.labels.tolist() == found.test.labels.tolist() == [0, 1, 2, 0, 1, 2]
    pictures = found.noisy.pictures()
    assert pictures.given[:3] == ["Down Coat", "Dress", "T-Shirt"]
    assert pictures.sources[3] == folder / "images/3/3/noisy_train,3.jpg"
    assert pictures.sources[3].is_file()


def test_the_folder_that_holds_it_will_do(folder):
    assert len(read_clothing1m(folder.parent).noisy) == 24


@pytest.mark.parametrize("inside", [True, False])
def test_lists_may_lie_in_annotations_and_pictures_without_images(folder, inside):
    for path in list(folder.glob("*.txt")):
        (folder / "annotations").mkdir(exist_ok=True)
        path.rename(folder / "annotations" / path.name)
    for path in list((folder / "images").iterdir()):
        path.rename(folder / path.name)
    (folder / "images").rmdir()
    found = read_clothing1m(folder if inside else folder.parent)
    assert found.noisy.pictures().sources[3] == folder / "3/3/noisy_train,3.jpg"
    assert all(found.test.pictures().sources[place].is_file() for place in range(6))


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_chinese_names_alone(folder, encoding):
    (folder / "category_names_eng.txt").unlink()
    (folder / "category_names_chn.txt").write_text("T恤\n羽绒服\n连衣裙\n", encoding=encoding)
    assert read_clothing1m(folder).test.classes == ("T恤", "羽绒服", "连衣裙")


def test_line_ends_of_windows_and_blank_lines(folder):
    path = folder / "noisy_train_key_list.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    assert str(read_clothing1m(folder).noisy.keys[0]).endswith(".jpg")


def test_a_picture_that_is_not_there_is_listed(folder, tmp_path):
    (folder / "images/3/3/noisy_train,3.jpg").unlink()
    found = decode(read_clothing1m(folder).noisy.pictures(), 16, tmp_path / "cache", lambda _: None)
    assert found.unreadable == {3: "there is no such file"}
    assert len(found.pixels) == 23


def test_a_key_that_is_there_twice_counts_once(folder):
    change(folder / "clean_test_key_list.txt", 7, "images/0/0/clean_test,0.jpg")
    test = read_clothing1m(folder).test
    assert len(test) == 6
    assert test.notes == ["clean_test_key_list.txt names 1 picture(s) more than once; each counts once"]


def test_some_of_every_class(folder):
    noisy = read_clothing1m(folder).noisy
    some = noisy.limited(2)
    assert np.bincount(some.labels).tolist() == [2, 2, 2]
    rows = [noisy.keys.tolist().index(key) for key in some.keys]
    assert rows == sorted(rows)
    assert [noisy.labels[row] for row in rows] == some.labels.tolist()
    assert some.keys.tolist() == noisy.limited(2).keys.tolist() != noisy.limited(2, seed=1).keys.tolist()
    assert len(noisy.limited(1000)) == len(noisy.limited(None)) == 24


NAMES, NOISY, TEST = "category_names_eng.txt", "noisy_train_key_list.txt", "clean_test_key_list.txt"
NOISY_KV, CLEAN_KV = "noisy_label_kv.txt", "clean_label_kv.txt"
KEY = "images/1/1/noisy_train,1.jpg"


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        (NOISY_KV, 2, KEY, rf"{NOISY_KV}, line 2: a line must be a key and the number of its class. Got '{KEY}'"),
        (NOISY_KV, 2, f"{KEY} 1 1", f"{NOISY_KV}, line 2: a line must be a key and the number"),
        (NOISY_KV, 2, f"{KEY} coat", f"{NOISY_KV}, line 2: the class must be a number from 0 to 2. Got '{KEY} coat'"),
        (NOISY_KV, 2, f"{KEY} 3", f"{NOISY_KV}, line 2: the class must be a number from 0 to 2"),
        (CLEAN_KV, 2, "images/1/1/clean_train,1.jpg -1", f"{CLEAN_KV}, line 2: the class must be a number"),
        (NOISY_KV, 26, f"{KEY} 0", rf"{NOISY_KV}, line 26: a key must have one label; {KEY} has 2 above"),
        (NOISY_KV, 2, "../1.jpg 0", f"{NOISY_KV}, line 2: a picture must be a path such as folder/name.jpg"),
        (
            NOISY,
            25,
            "images/7/7/new.jpg",
            rf"{NOISY}, line 25: a key must have a label in {NOISY_KV}. \S+new.jpg has none",
        ),
        (NOISY, 2, "two words/1.jpg", f"{NOISY}, line 2: a picture must be a path .* without spaces"),
        (NOISY, 2, "/etc/passwd", f"{NOISY}, line 2: a picture must be a path"),
        (NOISY, 2, "name.jpg", f"{NOISY}, line 2: a picture must be a path"),
        (NAMES, 3, "T-Shirt", f"{NAMES}, line 3: a line must be one class, named once. Got 'T-Shirt'"),
    ],
)
def test_a_bad_line_is_named(folder, name, line, text, message):
    change(folder / name, line, text)
    with pytest.raises(DataError, match=message):
        read_clothing1m(folder)


def test_a_label_taken_away(folder):
    change(folder / CLEAN_KV, 1, None)
    with pytest.raises(DataError, match=r"clean_train_key_list\.txt, line 1: .*clean_label_kv\.txt.*1 "):
        read_clothing1m(folder)


@pytest.mark.parametrize("name", [NOISY, TEST, "clean_train_key_list.txt", NOISY_KV, CLEAN_KV, NAMES])
def test_a_list_that_is_missing_or_empty(folder, name):
    (folder / name).write_text("\n\n")
    with pytest.raises(DataError, match=f"{name} must "):
        read_clothing1m(folder)
    (folder / name).unlink()
    if name == NAMES:
        (folder / "category_names_chn.txt").unlink()
    with pytest.raises(DataError, match=name):
        read_clothing1m(folder)


def test_nothing_learns_from_what_it_is_tested_on(folder):
    change(folder / NOISY, 25, "images/0/0/clean_test,0.jpg")
    change(folder / NOISY_KV, 26, "images/0/0/clean_test,0.jpg 1")
    with pytest.raises(DataError, match=f"{NOISY} must not name pictures of {TEST}.*1 of them"):
        read_clothing1m(folder)


def test_bytes_that_are_no_text(folder):
    (folder / NOISY).write_bytes(b"images/0/\xff\xfe.jpg\n")
    with pytest.raises(DataError, match=f"{NOISY} must be text in utf-8-sig. Got byte 0xff"):
        read_clothing1m(folder)


def test_a_wrong_folder(folder, tmp_path):
    other = food101n(tmp_path / "elsewhere" / "Food-101N_release")
    with pytest.raises(DataError, match=r"must be the folder of Clothing1M.*Got: images, meta"):
        read_clothing1m(other)
    with pytest.raises(DataError, match="which is not one"):
        read_clothing1m(tmp_path / "nowhere")
    shutil.copytree(folder, folder.parent / "again")
    with pytest.raises(DataError, match="it is in again, clothing1M; give one of them"):
        read_clothing1m(folder.parent)
    shutil.rmtree(folder / "images")
    with pytest.raises(DataError, match="must hold the pictures of Clothing1M in images/0"):
        read_clothing1m(folder)
