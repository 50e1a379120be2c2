import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from labelmend.report.drawings import element
from labelmend.report.html import asset, content_policy, data_uri, embed_json, escape
from labelmend.report.write import _templates

AWKWARD = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "a & b", "naïve 漢字", "\udc80", "\x00\x1b"]


class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.attributes = [], "", {}

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.update(attributes)

    def handle_data(self, data):
        self.text += data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("text", AWKWARD)
def test_text_stays_text_in_the_body_and_in_attributes(text):
    shown = read(element("p", text, title=text))
    assert shown.tags == ["p"]
    spelled = text.replace("\udc80", "\\udc80").replace("\x00", "\\x00").replace("\x1b", "\\x1b")
    assert shown.text == spelled
    assert shown.attributes == {"title": spelled}


@given(st.text())
def test_any_text_can_be_written_as_utf_8_and_opens_no_element(text):
    page = element("p", text)
    page.encode("utf-8")
    assert read(page).tags == ["p"]


def test_elements_by_hand():
    assert element("p", "a", Markup("<b>b</b>"), 3) == "<p>a<b>b</b>3</p>"
    assert element("text", "<", text_anchor="end", class_="y") == '<text text-anchor="end" class="y">&lt;</text>'
    assert element("rect", x=0, y=0.5) == '<rect x="0" y="0.5"></rect>'


@pytest.mark.parametrize("text", AWKWARD)
def test_templates_escape_what_they_show(text):
    """Also in attributes, through macros, and joined to other text."""
    made = _templates().from_string('{% macro p(t) %}<p title="{{ t }}">{{ t }}</p>{% endmacro %}{{ p(text ~ "") }}')
    assert made.render(text=text) == element("p", text, title=text)
    assert _templates().from_string("{{ value }}").render(value=None) == ""
    with pytest.raises(UndefinedError):
        _templates().from_string("{{ misspelled }}").render()


@pytest.mark.parametrize("text", [*AWKWARD[:4], "</script><script>", "<!--", "\u2028"])
def test_embedded_json_cannot_leave_its_element_and_says_the_same(text):
    written = embed_json({"name": text})
    assert not set(written) & set("<>&\u2028")
    assert json.loads(written) == {"name": text}


def test_the_policy_names_what_may_run_by_its_hash():
    digest = base64.b64encode(hashlib.sha256("let a = '漢';".encode()).digest()).decode()
    policy = content_policy(styles=[], scripts=["let a = '漢';"])
    assert f"script-src 'sha256-{digest}'" in policy
    assert "style-src 'none'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_pictures_say_what_they_are():
    assert data_uri(b"\x89PNG1234") == "data:image/png;base64," + base64.b64encode(b"\x89PNG1234").decode()
    assert data_uri(b"\xff\xd8\xff").startswith("data:image/jpeg;")


def test_assets_are_there():
    assert "--accent" in asset("base.css")


def test_escaping_keeps_line_breaks():
    assert escape("a\nb") == "a\nb"
