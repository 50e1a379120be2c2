import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import result_by_hand as by_hand
from result_by_hand import Painted, Rows, report

from labelmend.diagnosis.projection import SampleMap
from labelmend.report.contents import make_contents
from labelmend.report.write import page
from labelmend.result import Source
from labelmend.storage.originals import Originals

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class Reader(HTMLParser):
    """Elements, their attributes, the text inside each kind of them, and which are left open."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.inside, self.open = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "input", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.inside.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def links(reader):
    """The sections that the page leads to."""
    return {attributes["href"].removeprefix("#") for attributes in reader.all("a")}


def evil_page(originals):
    return report(
        originals,
        names=[f"{i}{EVIL}" for i in range(3)],
        ids=np.array([f"{EVIL}{i}" for i in range(8)]),
        repeat=EVIL,
        warnings=[EVIL],
        versions={EVIL: EVIL},
        unreadable={EVIL: EVIL},
        fingerprint=EVIL,
        source=Source("table", f"/data/{EVIL}", labels=EVIL),
    )


def test_elements_are_closed_in_order_and_sections_have_links():
    reader = Reader(report(Painted()))
    assert reader.open == []
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert links(reader) <= set(ids)
    assert {"summary", "flow", "profile", "noise", "map", "samples", "trust", "rounds", "making"} <= links(reader)


@pytest.mark.parametrize("originals", [Originals(EVIL), Painted(), Rows([EVIL, "width"])])
def test_nothing_from_the_data_becomes_an_element_or_an_attribute(originals):
    text = evil_page(originals)
    reader, calm = Reader(text), Reader(report(originals if originals.kind != "none" else None))
    assert len(reader.all("script")) == len(calm.all("script")) == 3
    assert not any("onerror" in attributes for _, attributes in reader.elements)
    assert all(attributes["src"].startswith("data:image/") for attributes in reader.all("img"))
    assert EVIL in "".join(reader.inside["code"])
    assert EVIL.split("/")[-1] in "".join(reader.inside["h1"])  # the file name of the path


def test_embedded_data_give_back_what_was_put_in():
    data = json.loads(re.search(r'id="map-data">(.*?)</script>', evil_page(Painted())).group(1))
    assert data["classes"][0].startswith("0</script>")
    assert data["statuses"][data["status"][-1]] == "corrected"
    assert data["given"][3] == -1
    assert data["confidence"][-1] == 99


def test_the_policy_allows_the_style_and_scripts_of_this_page_and_nothing_else():
    text = report(Painted())
    policy = next(a["content"] for a in Reader(text).all("meta") if a.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"

    def digest(part):
        return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"

    assert rules["style-src"] == digest(re.search("<style>(.*?)</style>", text, re.DOTALL).group(1))
    scripts = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    assert rules["script-src"].split() == [digest(script) for script in scripts]
    assert " style=" not in text


def test_no_address_outside_the_page():
    text = re.sub(r'src="data:[^"]*"', "", report(Painted()))
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert "@import" not in text


def test_fifty_thousand_samples_of_a_thousand_classes_fit_into_five_megabytes():
    contents = make_contents(by_hand.large_result(50_000, 1_000, 5_000), Painted())
    assert len(contents.map.atlas.cells) == 5_000
    text = page(contents)
    assert len(text.encode()) < 5_000_000
    assert "20 of 1,000 classes" in text
    assert text.count("<circle cx") >= 5_000


def test_rows_of_fifty_thousand_samples_fit_too():
    wide = Rows([f"a column with a long name {i}" for i in range(30)])
    assert len(page(make_contents(by_hand.large_result(50_000, 1_000, 5_000), wide)).encode()) < 5_000_000


def test_what_is_not_recorded_is_told():
    text = report(map=None, versions={}, repeat="")
    assert "This run has no map" in text
    assert "not recorded" in text
    assert "map-data" not in re.sub("<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "Samples cannot be shown: they moved." in text


def test_no_change_is_said_in_words():
    text = report(corrected_codes=np.maximum(by_hand.GIVEN, 0))
    assert "No label was changed." in text


def test_every_plot_and_section_says_what_it_means():
    reader = Reader(report(Painted()))
    assert len(reader.inside["h2"]) == len(links(reader)) - 1
    assert all(attributes.get("aria-label") or attributes.get("aria-hidden") for attributes in reader.all("svg"))
    assert all("alt" in attributes for attributes in reader.all("img"))
    assert len([a for _, a in reader.elements if a.get("class") == "meaning"]) >= 9


def test_tables_have_captions_and_headers():
    reader = Reader(report(Rows()))
    assert len(reader.all("caption")) == len(reader.all("table"))
    assert all(attributes.get("scope") in ("row", "col") for attributes in reader.all("th"))


def test_awkward_class_names_can_be_seen():
    text = report(names=["", " ", "naïve 漢字 🙂"])
    assert "&#39; &#39;" in text
    assert "naïve 漢字 🙂" in text


def test_the_map_names_the_unreadable_only_where_there_are_some():
    read = "All 8 samples."
    assert read in report()
    status = by_hand.result().status.copy()
    status[0] = "unreadable"
    part = SampleMap(np.arange(1, 8), by_hand.result().map.positions[1:])
    text = report(status=status, map=part, unreadable={"s0": "cut off"})
    assert "All 7 samples that could be read." in text
    assert read not in text
