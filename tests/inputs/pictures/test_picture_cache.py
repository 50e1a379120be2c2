import builtins
import errno
import io
import os
import socket
import struct
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from labelmend.errors import CacheError, ConfigError, DataError, MissingExtraError
from labelmend.inputs.pictures import cache as picture_cache
from labelmend.inputs.pictures import cache as picture_contents
from labelmend.inputs.pictures import pixels as picture_pixels
from labelmend.inputs.pictures.cache import decode, native_size
from labelmend.inputs.pictures.find import Pictures, find_pictures

Image = pytest.importorskip("PIL.Image")

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
NO_PROGRESS = str  # takes a text and does nothing


def pictures_of(*sources):
    return Pictures(np.arange(len(sources)).astype(str), ["a"] * len(sources), None, list(sources))


def encoded(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def plain(colour, size=(16, 16), mode="RGB"):
    return Image.new(mode, size, colour)


def halves(left=RED, right=BLUE):
    image = plain(left)
    image.paste(right, (8, 0, 16, 16))
    return image


def pixels_of(tmp_path, source, size=16):
    """The one picture, decoded."""
    result = decode(pictures_of(source), size, tmp_path / "cache", NO_PROGRESS)
    assert result.unreadable == {}
    return result.pixels[0]


def reason_of(tmp_path, source):
    """Why one picture cannot be read, beside another that can."""
    result = decode(pictures_of(source, encoded(plain(RED))), 16, tmp_path / "cache", NO_PROGRESS)
    assert result.readable.tolist() == [1]
    assert (result.pixels[0] == RED).all()
    return result.unreadable[0]


# Whole sets


def test_pictures_are_decoded_in_their_order_and_the_unreadable_are_named(tmp_path):
    colours = [(i, 2 * i, 255 - i) for i in range(60)]
    sources = [encoded(plain(colour)) for colour in colours]
    sources[7], sources[31] = b"not a picture", b""
    result = decode(pictures_of(*sources), 16, tmp_path, NO_PROGRESS)
    assert isinstance(result.pixels, np.memmap)
    assert not result.pixels.flags.writeable
    assert result.pixels.dtype == np.uint8
    assert sorted(result.unreadable) == [7, 31]
    assert result.readable.tolist() == [i for i in range(60) if i not in (7, 31)]
    assert result.pixels.shape == (58, 16, 16, 3)
    np.testing.assert_array_equal(result.pixels[:, 5, 5], [colours[i] for i in result.readable])


def test_folders_are_found_and_decoded(tmp_path):
    for name, colour in (("photos/cat/1.png", RED), ("photos/dog/1.png", BLUE)):
        (tmp_path / name).parent.mkdir(parents=True)
        plain(colour).save(tmp_path / name)
    os.mkfifo(tmp_path / "photos/dog/2.png")
    found = find_pictures(tmp_path / "photos")
    result = decode(found, None, tmp_path / "cache", NO_PROGRESS)
    assert (result.pixels[0] == RED).all()
    assert (result.pixels[1] == BLUE).all()
    assert result.unreadable == {2: "it is a pipe, socket or device, not a file"}


def test_the_cache_is_used_again_with_the_unreadable(tmp_path, monkeypatch):
    pictures = pictures_of(encoded(halves()), b"text")
    first = decode(pictures, 8, tmp_path, NO_PROGRESS)
    monkeypatch.setattr(picture_cache, "read_pixels", None)
    second = decode(pictures, 8, tmp_path, NO_PROGRESS)
    np.testing.assert_array_equal(first.pixels, second.pixels)
    assert second.unreadable == first.unreadable
    assert second.readable.tolist() == [0]
    assert second.fingerprint == first.fingerprint


def test_the_fingerprint_follows_content_order_and_size_and_not_names(tmp_path):
    one, two = encoded(plain(RED)), encoded(plain(BLUE))
    (tmp_path / "1.png").write_bytes(one)
    (tmp_path / "2.png").write_bytes(two)

    def fingerprint(*sources, size=8):
        return decode(pictures_of(*sources), size, tmp_path / "cache", NO_PROGRESS).fingerprint

    same = fingerprint(one, two)
    assert fingerprint(tmp_path / "1.png", tmp_path / "2.png") == same
    others = {fingerprint(two, one), fingerprint(one, two, size=(8, 9)), fingerprint(one), fingerprint(one, two, b"")}
    assert len(others - {same}) == 4


def test_a_file_that_changes_is_decoded_again(tmp_path):
    path = tmp_path / "1.png"
    path.write_bytes(encoded(plain(RED)))
    assert (pixels_of(tmp_path, path) == RED).all()
    path.write_bytes(encoded(plain(BLUE)))
    assert (pixels_of(tmp_path, path) == BLUE).all()


def test_a_file_that_was_missing_is_read_when_it_is_there(tmp_path):
    path = tmp_path / "1.png"
    assert reason_of(tmp_path, path) == "there is no such file"
    path.write_bytes(encoded(plain(RED)))
    result = decode(pictures_of(path, encoded(plain(RED))), 16, tmp_path / "cache", NO_PROGRESS)
    assert result.unreadable == {}


def test_a_file_is_hashed_once_unless_it_has_just_changed(tmp_path, monkeypatch):
    path = tmp_path / "\udcff.png"
    path.write_bytes(encoded(plain(RED)))
    hashed = []
    digest = picture_contents._digest
    monkeypatch.setattr(picture_contents, "_digest", lambda source: hashed.append(source) or digest(source))
    pixels_of(tmp_path, path)
    pixels_of(tmp_path, path)
    assert len(hashed) == 2, "it may still be changing"
    monkeypatch.setattr(picture_contents, "SETTLED_NS", -1)
    for _ in range(3):
        assert (pixels_of(tmp_path, path) == RED).all()
    assert len(hashed) == 3
    path.write_bytes(encoded(plain(BLUE, (17, 16))))
    assert (pixels_of(tmp_path, path) == BLUE).all()


@pytest.mark.parametrize("name", ["*.npy", "*.json", "contents.json"])
@pytest.mark.parametrize("damage", [b"", b"[1", b'["a"]', b"\x93NUMPY\x01\x00\x76\x00{'descr'"])
def test_a_damaged_cache_is_made_again(tmp_path, monkeypatch, name, damage):
    monkeypatch.setattr(picture_contents, "SETTLED_NS", -1)
    path = tmp_path / "1.png"
    path.write_bytes(encoded(plain(GREEN)))
    pixels_of(tmp_path, path)
    files = list((tmp_path / "cache").glob(name))
    assert files
    for file in files:
        file.write_bytes(damage)
    assert (pixels_of(tmp_path, path) == GREEN).all()


def test_a_cut_off_cache_is_made_again(tmp_path):
    source = encoded(plain(GREEN))
    pixels_of(tmp_path, source)
    (file,) = (tmp_path / "cache").glob("*.npy")
    os.truncate(file, file.stat().st_size - 1)
    assert (pixels_of(tmp_path, source) == GREEN).all()


def test_an_interrupted_decoding_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(source, size):
        raise KeyboardInterrupt

    monkeypatch.setattr(picture_cache, "read_pixels", interrupt)
    with pytest.raises(KeyboardInterrupt):
        decode(pictures_of(encoded(plain(RED))), 8, tmp_path, NO_PROGRESS)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_that_says_so_and_leaves_nothing(tmp_path, monkeypatch):
    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(picture_cache, "_flush", full)
    with pytest.raises(CacheError, match="No space left on device"):
        decode(pictures_of(encoded(plain(RED))), 8, tmp_path, NO_PROGRESS)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_is_refused_before_decoding(tmp_path, monkeypatch):
    monkeypatch.setattr(picture_cache, "read_pixels", None)
    with pytest.raises(CacheError, match=r"must have room for 300000\.0 GB\. There are"):
        decode(pictures_of(encoded(plain(RED))), 10_000_000, tmp_path, NO_PROGRESS)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="must be writable"):
        decode(pictures_of(encoded(plain(RED))), 8, tmp_path / "file", NO_PROGRESS)


def test_no_readable_picture_at_all_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"picture.*readable.* 0: "):
        decode(pictures_of(b"a", b"b"), 8, tmp_path, NO_PROGRESS)
    assert list(tmp_path.glob("*.npy")) == []


def test_few_pictures_are_in_memory_and_few_threads_at_work(tmp_path, monkeypatch):
    ahead, most, lock = set(), [0], threading.Lock()

    def slow(source, size):
        with lock:
            ahead.add(source)
            most[0] = max(most[0], len(ahead) - written[0])
        return np.zeros((*size, 3), np.uint8)

    written = [0]
    monkeypatch.setattr(picture_cache, "read_pixels", slow)
    monkeypatch.setattr(picture_cache._Counter, "one_more", lambda self: written.__setitem__(0, written[0] + 1))
    monkeypatch.setattr(picture_cache.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(picture_cache, "_key", lambda *_: "key")
    decode(pictures_of(*(bytes([i, j]) for i in range(20) for j in range(10))), 4, tmp_path, NO_PROGRESS)
    assert written == [200]
    assert 1 <= most[0] <= 2 * picture_cache.AHEAD + 1


def test_progress_is_told(tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(picture_cache.time, "monotonic", lambda: next(clock))
    told = []
    decode(pictures_of(encoded(plain(RED)), encoded(plain(BLUE))), 8, tmp_path, told.append)
    assert [text for text in told if text.startswith("decoding")] == [
        "decoding pictures (0 of 2)",
        "decoding pictures (1 of 2)",
        "decoding pictures (2 of 2)",
    ]


def test_without_pillow_the_error_gives_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r'pip install "labelmend\[images\]"'):
        decode(pictures_of(b"x"), 8, tmp_path, NO_PROGRESS)


# Sizes


def test_the_shared_size_is_kept_and_other_sizes_are_not_shared(tmp_path):
    same = pictures_of(encoded(halves()), encoded(plain(RED)), b"unreadable")
    assert native_size(same) == (16, 16)
    np.testing.assert_array_equal(decode(same, None, tmp_path, NO_PROGRESS).pixels[0], halves())
    differing = pictures_of(encoded(plain(RED, (4, 8))), encoded(plain(RED, (8, 4))))
    assert native_size(differing) is None
    with pytest.raises(DataError, match="must share one size where none is asked for"):
        decode(differing, None, tmp_path, NO_PROGRESS)
    assert native_size(pictures_of(b"unreadable")) is None
    assert native_size(pictures_of(encoded(plain(RED, (4, 8))))) == (8, 4)


@pytest.mark.parametrize("size", [0, -1, 2.5, (3, 0), (1, 2, 3), "8"])
def test_a_size_that_is_none_is_refused(tmp_path, size):
    with pytest.raises(ConfigError, match="size must be a number of pixels above 0"):
        decode(pictures_of(b"x"), size, tmp_path, NO_PROGRESS)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("scale", [1, 30])
def test_the_short_side_fits_and_the_ends_of_the_long_one_are_cut(tmp_path, kind, scale):
    # Green in the middle, red and blue at the ends: of a wide picture only the middle square is left.
    image = plain(RED, (48 * scale, 16 * scale))
    image.paste(GREEN, (16 * scale, 0, 32 * scale, 16 * scale))
    image.paste(BLUE, (32 * scale, 0, 48 * scale, 16 * scale))
    pixels = pixels_of(tmp_path, encoded(image, kind, **({"quality": 100, "subsampling": 0} if kind == "JPEG" else {})))
    np.testing.assert_allclose(pixels.astype(int)[:, 1:-1], np.broadcast_to(GREEN, (16, 14, 3)), rtol=0, atol=6)
    tall = pixels_of(tmp_path, encoded(image.rotate(90, expand=True), "PNG"), (32, 16))
    assert tall.shape == (32, 16, 3)
    np.testing.assert_array_equal(tall[16, 8], GREEN)
    np.testing.assert_array_equal(tall[2, 8], BLUE)
    np.testing.assert_array_equal(tall[-3, 8], RED)


def test_shrinking_averages(tmp_path):
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    pixels = pixels_of(tmp_path, encoded(Image.fromarray(stripes)), 8)
    np.testing.assert_allclose(pixels, 127.5, rtol=0, atol=6)


def test_a_large_jpeg_is_not_decoded_in_full(tmp_path, monkeypatch):
    drafted = []
    monkeypatch.setattr(picture_pixels, "_rgb", lambda image: drafted.append(image.size) or image)
    pixels_of(tmp_path, encoded(plain(RED, (1600, 800)), "JPEG"), 16)
    assert drafted == [(200, 100)]


# Kinds of pictures


GREY_16 = np.array([[0, 257, 32896, 65535] * 4] * 16, dtype=np.uint16)


def test_grey_and_black_and_white(tmp_path):
    assert (pixels_of(tmp_path, encoded(plain(77, mode="L"))) == 77).all()
    assert (pixels_of(tmp_path, encoded(plain(1, mode="1"))) == 255).all()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_scaled_to_8(tmp_path, kind):
    pixels = pixels_of(tmp_path, encoded(Image.fromarray(GREY_16), kind))
    np.testing.assert_array_equal(pixels[0, :4, 1], [0, 1, 128, 255])


def test_numbers_of_32_bits_and_fractions_are_scaled(tmp_path):
    whole = Image.fromarray(GREY_16.astype(np.int32))
    np.testing.assert_array_equal(pixels_of(tmp_path, encoded(whole, "TIFF"))[0, :4, 0], [0, 1, 128, 255])
    wide = Image.fromarray(np.array([[-100_000, 0, 100_000, 100_000] * 4] * 16, np.int32))
    np.testing.assert_array_equal(pixels_of(tmp_path, encoded(wide, "TIFF"))[0, :4, 0], [0, 128, 255, 255])
    fractions = Image.fromarray(np.array([[0.0, 0.2, np.nan, 1.0] * 4] * 16, np.float32))
    np.testing.assert_array_equal(pixels_of(tmp_path, encoded(fractions, "TIFF"))[0, :4, 0], [0, 51, 0, 255])
    flat = Image.fromarray(np.full((16, 16), 1e6, np.float32))
    assert (pixels_of(tmp_path, encoded(flat, "TIFF")) == 0).all()


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk(tmp_path, kind):
    pixels = pixels_of(tmp_path, encoded(plain((0, 255, 255, 0), mode="CMYK"), kind))
    np.testing.assert_allclose(pixels.astype(int)[8, 8], RED, rtol=0, atol=6)


def test_transparency_shows_white(tmp_path):
    half = plain((255, 0, 0, 128), mode="RGBA")
    np.testing.assert_array_equal(pixels_of(tmp_path, encoded(half))[3, 3], (255, 127, 127))
    assert (pixels_of(tmp_path, encoded(plain((0, 0), mode="LA"))) == 255).all()


def test_palettes_with_and_without_transparency(tmp_path):
    palette = halves().quantize(2)
    np.testing.assert_array_equal(pixels_of(tmp_path, encoded(palette)), halves())
    clear = palette.getpixel((0, 0))
    for transparency in (clear, bytes([0 if i == clear else 255 for i in range(2)])):
        pixels = pixels_of(tmp_path, encoded(palette, transparency=transparency))
        np.testing.assert_array_equal(pixels, halves(WHITE, BLUE))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_picture(tmp_path, kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    source = encoded(plain(RED), kind, save_all=True, append_images=[plain(BLUE)], **options)
    assert (pixels_of(tmp_path, source) == RED).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_its_exif_says(tmp_path, kind, orientation):
    upright = np.zeros((16, 32, 3), np.uint8)
    upright[:8, :16], upright[:8, 16:], upright[8:, :16] = RED, GREEN, BLUE
    # How the camera stored it, from the definition of the tag: where row 0 and column 0 of the file are shown.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.swapaxes(0, 1),
        6: upright.swapaxes(0, 1)[::-1],
        7: upright.swapaxes(0, 1)[::-1, ::-1],
        8: upright.swapaxes(0, 1)[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    source = encoded(Image.fromarray(np.ascontiguousarray(stored)), kind, exif=exif, **options)
    assert native_size(pictures_of(source)) == (16, 32)
    pixels = decode(pictures_of(source), None, tmp_path, NO_PROGRESS).pixels[0]
    np.testing.assert_allclose(pixels.astype(int), upright, rtol=0, atol=6)


@pytest.mark.parametrize("orientation", [0, 9, 200])
def test_an_orientation_that_is_none_is_ignored(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    np.testing.assert_array_equal(pixels_of(tmp_path, encoded(halves(), exif=exif)), halves())


def test_damaged_exif_is_ignored(tmp_path):
    source = encoded(halves(), "JPEG", exif=b"Exif\0\0MM\0\x2a\0\0\0\x08\xff\xff\x01\x12", quality=100)
    np.testing.assert_allclose(pixels_of(tmp_path, source).astype(int)[:, 1:6], np.full((16, 5, 3), RED), atol=6)


# What cannot be read


def png_of_size(width, height):
    """A PNG whose header promises more than the file holds."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_cut_off_files(tmp_path, kind, share):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8))
    source = encoded(noise, kind)
    reason = reason_of(tmp_path, source[: int(len(source) * share)])
    assert reason.startswith(("it is damaged or cut off", "it is not a picture"))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "no picture is given"),
        (b"", "the picture is empty (0 bytes)"),
        (b"just text", "it is not a picture, or of a format that cannot be read here"),
        (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "it is not a picture, or of a format that cannot be read here",
        ),
        (png_of_size(13_400, 13_400), "it has more than 178 million pixels"),
        (png_of_size(60_000, 60_000), "it has more than 178 million pixels"),
    ],
)
def test_the_reasons_are_plain(tmp_path, source, reason):
    assert reason_of(tmp_path, source) == reason


def test_a_large_picture_below_the_limit_warns_nobody(tmp_path):
    assert native_size(pictures_of(png_of_size(10_000, 10_000))) == (10_000, 10_000)
    with pytest.raises(picture_pixels.Unreadable, match="more than 178 million"), picture_pixels.quiet():
        picture_pixels.read_size(png_of_size(13_400, 13_400))


def test_the_limit_holds_where_pillow_was_told_to_have_none(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert reason_of(tmp_path, png_of_size(13_400, 13_400)) == "it has more than 178 million pixels"


def test_odd_files_are_not_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "dead.jpg").symlink_to("nowhere")
    (tmp_path / "self.jpg").symlink_to("self.jpg")
    (tmp_path / "text.jpg").write_text("not a picture")
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.jpg")
        assert {path.name: reason_of(tmp_path, path) for path in tmp_path.glob("*.jpg")} == {
            "pipe.jpg": "it is a pipe, socket or device, not a file",
            "socket.jpg": "it is a pipe, socket or device, not a file",
            "folder.jpg": "it is a folder, not a file",
            "empty.jpg": "the file is empty (0 bytes)",
            "dead.jpg": "it is a link that points nowhere",
            "self.jpg": "it is a link that points to itself",
            "text.jpg": "it is not a picture, or of a format that cannot be read here",
        }
    assert "(" in reason_of(tmp_path, Path("a\0b.jpg")), "a path no system has"


def test_permission_denied(tmp_path, monkeypatch):
    path = tmp_path / "closed.png"
    path.write_bytes(encoded(plain(RED)))
    opening = builtins.open

    def refuse(file, *args, **kwargs):
        if file == path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opening(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", refuse)
    assert reason_of(tmp_path, path) == "permission denied"


def test_memory_that_does_not_suffice_costs_one_picture(tmp_path, monkeypatch):
    load = picture_pixels._rgb

    def refuse(image):
        if image.size == (99, 99):
            raise MemoryError
        return load(image)

    monkeypatch.setattr(picture_pixels, "_rgb", refuse)
    assert reason_of(tmp_path, encoded(plain(RED, (99, 99)))) == "it does not fit into memory"


# Arrays


@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_arrays_stay_in_memory_at_their_size_and_are_resized_at_another(tmp_path, channels):
    array = np.zeros((2, 16, 16, *channels), np.uint8)
    array[1, :, 8:] = 200
    pictures = Pictures(np.array(["0", "1"]), [0, 1], None, array)
    assert native_size(pictures) == (16, 16)
    for size in (None, 16, (16, 16)):
        result = decode(pictures, size, tmp_path / "cache", NO_PROGRESS)
        np.testing.assert_array_equal(result.pixels, np.broadcast_to(array.reshape(2, 16, 16, -1), (2, 16, 16, 3)))
        assert (result.readable.tolist(), result.unreadable) == ([0, 1], {})
    assert not (tmp_path / "cache").exists()
    small = decode(pictures, 8, tmp_path / "cache", NO_PROGRESS)
    assert small.pixels.shape == (2, 8, 8, 3)
    assert small.pixels[1, 4, 1].tolist() == [0, 0, 0]
    assert small.pixels[1, 4, 6].tolist() == [200, 200, 200]
    assert small.fingerprint != result.fingerprint


def test_arrays_of_other_content_have_another_fingerprint(tmp_path):
    prints = {
        decode(Pictures(np.array(["0"]), [0], None, array), None, tmp_path, NO_PROGRESS).fingerprint
        for array in (np.zeros((1, 4, 4), np.uint8), np.ones((1, 4, 4), np.uint8), np.zeros((1, 2, 8), np.uint8))
    }
    assert len(prints) == 3
