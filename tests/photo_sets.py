"""Tiny copies of Clothing1M, Food-101N and Food-101, laid out as these are distributed."""

import numpy as np
from PIL import Image

CLOTHES = ("T-Shirt", "Down Coat", "Dress")
FOODS = ("apple_pie", "ramen", "sushi")
COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200), (200, 200, 40))
SIDE = 24


def write_photo(path, colour, random):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.clip(np.array(colour) + random.integers(-40, 40, (SIDE, SIDE + 4, 3)), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=90)


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def clothing1m(root, n_noisy=24, n_clean=6, n_test=6, n_wrong=4):
    """The folder of a set whose first `n_wrong` labels from the web are wrong."""
    random = np.random.default_rng(0)
    lists = {"noisy_train": n_noisy, "clean_train": n_clean, "clean_val": 3, "clean_test": n_test}
    noisy, clean = [], []
    for split, n in lists.items():
        keys = []
        for number in range(n):
            true = number % len(CLOTHES)
            key = f"images/{number % 10}/{number}/{split},{number}.jpg"
            write_photo(root / key, COLOURS[true], random)
            keys.append(key)
            if split == "noisy_train":
                wrong = number < n_wrong
                noisy.append(f"{key} {(true + wrong) % len(CLOTHES)}")
            else:
                clean.append(f"{key} {true}")
        write_lines(root / f"{split}_key_list.txt", keys)
    noisy.append("images/9/99/clean_test,0.jpg 1")  # as distributed, some have both labels
    write_lines(root / "noisy_label_kv.txt", noisy)
    write_lines(root / "clean_label_kv.txt", clean)
    write_lines(root / "category_names_eng.txt", CLOTHES)
    write_lines(root / "category_names_chn.txt", ("T恤", "羽绒服", "连衣裙"))
    return root


def food101n(root, n=24, n_wrong=4):
    """The folder of a set whose first `n_wrong` pictures show another food; every second one is verified."""
    random = np.random.default_rng(1)
    keys, verified = [], []
    for number in range(n):
        given = number % len(FOODS)
        key = f"{FOODS[given]}/{number:032x}.jpg"
        write_photo(root / "images" / key, COLOURS[(given + (number < n_wrong)) % len(FOODS)], random)
        keys.append(key)
        verified.append(f"{key}\t{int(number >= n_wrong)}")
    write_lines(root / "meta/classes.txt", ("class_name", *FOODS))
    write_lines(root / "meta/imagelist.tsv", ("class_name/key", *keys))
    write_lines(root / "meta/verified_train.tsv", ("class_name/key\tverification_label", *verified[::2]))
    write_lines(root / "meta/verified_val.tsv", ("class_name/key\tverification_label", *verified[1:4:2]))
    return root


def food101(root, n_test=6):
    random = np.random.default_rng(2)
    test, train = [], []
    for number in range(2 * n_test):
        true = number % len(FOODS)
        key = f"{FOODS[true]}/{1000 + number}"
        write_photo(root / "images" / f"{key}.jpg", COLOURS[true], random)
        (test if number < n_test else train).append(key)
    write_lines(root / "meta/classes.txt", FOODS)
    write_lines(root / "meta/labels.txt", [name.replace("_", " ").title() for name in FOODS])
    write_lines(root / "meta/test.txt", test)
    write_lines(root / "meta/train.txt", train)
    return root


def change(path, line, text):
    """Line `line`, from 1, becomes `text`; None takes it away, a number after the last one adds it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[line - 1 : line] = [] if text is None else [text]
    path.write_text("".join(f"{row}\n" for row in lines), encoding="utf-8")
