"""The page: sections, style and scripts put into one file that asks nothing of anybody."""

from __future__ import annotations

from string import Template

from labelmend.report import class_sections, sections
from labelmend.report.annotator_section import annotators
from labelmend.report.contents import Contents
from labelmend.report.html import Html, asset, content_policy, element, escape
from labelmend.report.map_section import map_data, map_section
from labelmend.report.profile_section import profile
from labelmend.report.round_section import rounds
from labelmend.report.trust_section import trust_section
from labelmend.report.verdict_section import verdict_section

LINKS = {
    "summary": "Summary",
    "flow": "Changes",
    "profile": "Kind of noise",
    "noise": "Noise",
    "map": "Map",
    "samples": "Samples",
    "trust": "Trust",
    "rounds": "Rounds",
    "making": "How it was made",
}


def page(contents: Contents) -> str:
    style = asset("base.css") + asset("report.css")
    scripts = [asset("theme.js"), asset("map.js")]
    title = f"Labels of {contents.name}" if contents.name else "What became of the labels"
    main = (
        verdict_section(contents.verdict) or "",
        class_sections.flow(contents),
        profile(contents),
        class_sections.noise(contents),
        annotators(contents) or "",
        map_section(contents),
        sections.galleries(contents),
        trust_section(contents.trust),
        rounds(contents),
        sections.making(contents),
    )
    return Template(asset("report.html")).substitute(
        policy=escape(content_policy([style], scripts)),
        style=style,
        title=escape(title),
        summary=sections.summary(contents),
        links=Html("".join(element("li", element("a", name, href=f"#{id}")) for id, name in _links(contents).items())),
        main=Html("\n".join(main)),
        data=map_data(contents) or "",
        theme=scripts[0],
        map=scripts[1],
        version=escape(dict(contents.making.versions).get("labelmend", "")),
    )


def _links(contents: Contents) -> dict[str, str]:
    """The sections that every report has, and those that this one has besides."""
    own = {
        "noise": {"annotators": "Annotators"} if contents.annotators is not None else {},
        "summary": {"verdict": "Classes"} if contents.verdict is not None else {},
    }  # after which one
    return {id: name for at, title in LINKS.items() for id, name in {at: title, **own.get(at, {})}.items()}
