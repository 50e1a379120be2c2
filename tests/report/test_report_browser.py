"""The report in a real browser: it renders, asks the network for nothing, and can be used by everybody."""

import numpy as np
import pytest
import result_by_hand as by_hand
from result_by_hand import Painted, Rows

from labelmend.report.contents import make_contents
from labelmend.report.write import page as make_page

EVIL = "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 2'>"


def write(path, originals, **changes):
    path.write_text(by_hand.report(originals, **changes), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    evil = {"names": [f"{i}{EVIL}" for i in range(3)], "ids": np.array([f"{EVIL}{i}" for i in range(8)])}
    return {
        "pictures": write(folder / "pictures.html", Painted(48)),
        "rows": write(folder / "rows.html", Rows()),
        "evil": write(folder / "evil.html", Rows([EVIL, "width"]), **evil, repeat=EVIL, warnings=[EVIL]),
        "large": _large(folder / "large.html"),
    }


def _large(path):
    contents = make_contents(by_hand.large_result(6_000, 100, 5_000), Rows([f"column {i}" for i in range(20)]))
    path.write_text(make_page(contents), encoding="utf-8")
    return path.as_uri()


def opened(page, address):
    page.route("http*://**", lambda route: route.abort())
    page.goto(address)
    return page


@pytest.mark.parametrize("name", ["pictures", "rows", "evil", "large"])
def test_it_renders_without_an_error_or_a_request(page, pages, name):
    opened(page, pages[name])
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith("data:")] == [pages[name]]
    assert page.evaluate("window.bad") is None
    assert page.locator("h2").count() == page.locator("nav a").count() - 1, (
        "every section but the summary has a heading"
    )
    assert all(page.evaluate("Array.from(document.images, (image) => image.complete && image.naturalWidth > 0)"))


@pytest.mark.parametrize("name", ["pictures", "evil", "large"])
def test_nothing_is_wider_than_a_phone(page, pages, name):
    page.set_viewport_size({"width": 360, "height": 740})
    opened(page, pages[name])
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["pictures", "rows"])
def test_axe_finds_nothing_serious(page, pages, axe, scheme, name):
    page.emulate_media(color_scheme=scheme)
    opened(page, pages[name])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.focus("#plane")
    page.keyboard.press("ArrowRight")
    assert axe(page) == []


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_light_and_dark_follow_the_system_and_the_button(page, pages):
    page.emulate_media(color_scheme="light")
    opened(page, pages["rows"])
    light = background(page)
    page.emulate_media(color_scheme="dark")
    dark = background(page)
    assert light != dark
    page.click("#theme")
    assert background(page) == light
    page.click("#theme")
    assert background(page) == dark


def test_the_arrow_keys_walk_through_the_points_those_that_matter_first(page, pages):
    opened(page, pages["pictures"])
    page.focus("#plane")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#told").split("\n")[0] == "cat → dog"
    assert "id-2" in page.inner_text("#card")
    assert "corrected, 99%" in page.inner_text("#card")
    assert page.is_visible("#thumbnail")
    page.keyboard.press("ArrowRight")
    assert "id-1" in page.inner_text("#card")
    page.keyboard.press("ArrowLeft")
    assert "id-2" in page.inner_text("#card")
    page.keyboard.press("Escape")
    assert page.is_hidden("#card")


def test_what_the_keys_show_is_in_sight(page, pages):
    page.set_viewport_size({"width": 900, "height": 300})
    opened(page, pages["rows"])
    page.focus("#plane")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        page.wait_for_function(
            "() => { const box = document.getElementById('card').getBoundingClientRect();"
            " return box.height > 0 && box.top >= -1 && box.bottom <= innerHeight + 1; }"
        )


def test_the_pointer_tells_about_the_sample_beneath_it(page, pages):
    opened(page, pages["rows"])
    page.locator("#plane circle").nth(3).hover()
    assert "no label → owl" in page.inner_text("#card")
    assert "width6" in page.inner_text("#card")
    page.mouse.move(1, 1)
    assert page.is_hidden("#card")


def test_points_are_coloured_by_class_and_one_class_can_be_picked(page, pages):
    opened(page, pages["rows"])

    def colours():
        return page.evaluate("Array.from(document.querySelectorAll('#plane circle'), (c) => getComputedStyle(c).color)")

    by_status = colours()
    page.check("input[value=given]")
    given = colours()
    assert given[0] == given[6]  # both were given as cats
    assert by_status[0] != by_status[6]  # one was kept, one corrected
    page.check("input[value=corrected]")
    assert colours()[0] != colours()[6]
    assert page.locator("#legend li").all_inner_texts() == [" cat", " dog", " owl"]
    page.select_option("#only", label="owl")
    # Points: 0 3 5 | 6 | 4 7 | 1 2; samples 5, 6 and 4 have to do with owls.
    faint = page.evaluate("Array.from(document.querySelectorAll('#plane circle'), (c) => c.matches('.faint'))")
    assert faint == [True, True, False, False, False, True, True, True]


def test_the_picture_on_hover_is_that_of_the_sample(page, tmp_path):
    from PIL import Image

    from labelmend.storage.originals import Originals

    class Shades(Originals):
        kind = "pictures"

        def picture(self, index, side=None):
            return Image.new("RGB", (16, 16), (30 * index, 0, 0))

    opened(page, write(tmp_path / "shades.html", Shades()))
    page.focus("#plane")
    for index in (2, 1, 7):
        page.keyboard.press("ArrowRight")
        seen = "document.getElementById('thumbnail').getContext('2d').getImageData(48, 48, 1, 1).data[0]"
        assert page.evaluate(seen) == 30 * index


def test_without_scripts_the_map_can_be_seen_and_nothing_useless_is_there(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["pictures"])
    assert page.locator("#plane circle").count() == 8
    assert page.is_hidden("#map-controls")
    assert page.is_hidden("#theme")
    assert page.is_visible("text=3 kept")
    context.close()
