import shutil

import pytest

from bench.paper.food101 import read_food101_test, read_food101n
from labelmend.errors import DataError
from photo_sets import FOODS, change, clothing1m, food101, food101n

IMAGES, CLASSES, TRAIN, VAL = (
    "meta/imagelist.tsv",
    "meta/classes.txt",
    "meta/verified_train.tsv",
    "meta/verified_val.tsv",
)
KEY = f"apple_pie/{0:032x}.jpg"


@pytest.fixture
def noisy(tmp_path):
    return food101n(tmp_path / "Food-101N_release")


@pytest.fixture
def clean(tmp_path):
    return food101(tmp_path / "food-101")


def test_pictures_and_what_people_said_about_their_labels(noisy):
    found = read_food101n(noisy)
    assert found.photos.classes == FOODS
    assert found.photos.labels[:4].tolist() == [0, 1, 2, 0]
    assert found.verified[:8].tolist() == [0, 0, 0, 0, 1, -1, 1, -1]
    assert found.photos.pictures().sources[0] == noisy / "images" / KEY
    assert found.photos.notes == []


def test_test_pictures_have_the_numbers_of_the_classes_they_are_compared_with(clean):
    found = read_food101_test(clean, FOODS[::-1])
    assert found.classes == FOODS[::-1]
    assert found.labels.tolist() == [2, 1, 0] * 2
    assert found.pictures().sources[0] == clean / "images/apple_pie/1000.jpg"
    assert found.pictures().sources[0].is_file()


def test_one_folder_may_hold_both(noisy, clean):
    assert len(read_food101n(noisy.parent).photos) == 24
    assert len(read_food101_test(noisy.parent, FOODS)) == 6


def test_a_verified_picture_that_is_not_listed_is_noted(noisy):
    change(noisy / TRAIN, 14, "sushi/elsewhere.jpg\t1")
    found = read_food101n(noisy)
    assert found.photos.notes == ["1 verified picture(s) are not in meta/imagelist.tsv and are left out"]
    assert (found.verified >= 0).sum() == 14


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        (CLASSES, 1, None, f"{CLASSES}, line 1: the first line must be the header 'class_name'. Got 'apple_pie'"),
        (CLASSES, 3, "apple_pie", f"{CLASSES}, line 3: a line must be one class, named once"),
        (CLASSES, 3, "two words", f"{CLASSES}, line 3: a line must be one class, named once"),
        (IMAGES, 1, None, f"{IMAGES}, line 1: the first line must be the header 'class_name/key'. Got '{KEY}'"),
        (IMAGES, 3, "pizza/1.jpg", rf"{IMAGES}, line 3: the class 'pizza' must be in {CLASSES}. Got 'pizza/1.jpg'"),
        (IMAGES, 3, "sushi/1.jpg\t1", rf"{IMAGES}, line 3: a line must have 1 column\(s\)"),
        (IMAGES, 3, "1.jpg", f"{IMAGES}, line 3: a picture must be a path"),
        (IMAGES, 3, "sushi/../../1.jpg", f"{IMAGES}, line 3: a picture must be a path"),
        (TRAIN, 1, None, rf"{TRAIN}, line 1: the first line must be the header 'class_name/key\\tverification_label'"),
        (TRAIN, 2, KEY, rf"{TRAIN}, line 2: a line must have 2 column\(s\) with tabs"),
        (TRAIN, 2, f"{KEY} 1", rf"{TRAIN}, line 2: a line must have 2 column\(s\) with tabs"),
        (VAL, 2, "sushi/1.jpg\t2", f"{VAL}, line 2: verification_label must be 0 or 1"),
        (VAL, 2, f"{KEY}\t1", rf"{VAL}, line 2: a key must have one verification_label; {KEY} has 0 above"),
        (VAL, 2, "pizza/1.jpg\t1", f"{VAL}, line 2: the class 'pizza' must be in {CLASSES}"),
    ],
)
def test_a_bad_line_is_named(noisy, name, line, text, message):
    change(noisy / name, line, text)
    with pytest.raises(DataError, match=message):
        read_food101n(noisy)


@pytest.mark.parametrize("name", [IMAGES, CLASSES, TRAIN, VAL])
def test_a_list_that_is_missing_or_empty(noisy, name):
    header = (noisy / name).read_text().splitlines()[0]
    for text in ("", f"{header}\n"):
        (noisy / name).write_text(text)
        with pytest.raises(DataError, match=f"{name} must "):
            read_food101n(noisy)
    (noisy / name).unlink()
    with pytest.raises(DataError, match=name):
        read_food101n(noisy)


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        ("meta/test.txt", 2, "pizza/1", "meta/test.txt, line 2: the class 'pizza' must be in meta/classes.txt"),
        ("meta/test.txt", 2, "1", "meta/test.txt, line 2: a picture must be a path"),
        (CLASSES, 1, "class_name", "line 1: there must be no header. Got 'class_name'"),
        (CLASSES, 1, "pizza", "must name the classes of Food-101N. They differ in apple_pie, pizza"),
    ],
)
def test_a_bad_line_of_food101_is_named(clean, name, line, text, message):
    change(clean / name, line, text)
    with pytest.raises(DataError, match=message):
        read_food101_test(clean, FOODS)


def test_food101_without_its_test_list(clean):
    (clean / "meta/test.txt").write_text("")
    with pytest.raises(DataError, match=r"meta/test.txt must hold pictures. It is empty"):
        read_food101_test(clean, FOODS)
    (clean / "meta/test.txt").unlink()
    with pytest.raises(DataError, match=r"must be the folder of Food-101, .*meta/test.txt"):
        read_food101_test(clean, FOODS)


def test_the_two_swapped(noisy, clean):
    with pytest.raises(DataError, match=r"folder of Food-101N.*Food-101, "):
        read_food101n(clean)
    with pytest.raises(DataError, match=r"folder of Food-101, .*Food-101N"):
        read_food101_test(noisy, FOODS)


def test_a_wrong_folder(noisy, tmp_path):
    other = clothing1m(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"must be the folder of Food-101N, .*Got: category_names_chn.txt"):
        read_food101n(other)
    shutil.rmtree(noisy / "images")
    with pytest.raises(DataError, match=r"must hold the pictures in images/"):
        read_food101n(noisy)
