"""The noise profile in words for people: what was found, what it means, what to do about it.

Knows a profile; does not know where the words are shown.
"""

from __future__ import annotations

from labelmend.trust.profile import Estimate, NoiseProfile

MEANINGS = {
    "random": (
        "Errors are spread over all samples and classes, as slips, spam or mixed-up files make them.",
        "They are the easiest to mend; look at how labels were entered or joined rather than at single classes.",
    ),
    "confusing": (
        "Errors sit at the borders between classes, where samples look like either.",
        "Many of them cannot be seen from the data alone, so more are left than were found; ask annotators about these "
        "pairs again, with a clear rule for each.",
    ),
    "patch": (
        "Errors come in whole neighbourhoods of similar samples that carry the same wrong label.",
        "Look for a common cause, such as one batch, one source or one annotator, and check it as a whole.",
    ),
}
NO_ERRORS = "Nothing speaks for more than a few wrong labels."
TOO_FEW = "Too few labels are held wrong to say what kind of errors they are."
SMALL = 0.005  # shares that are not worth a word


def rate_text(rate: Estimate) -> str:
    return f"{rate.value:.1%} of the labels ({rate.low:.1%} to {rate.high:.1%})"


def kinds_text(profile: NoiseProfile) -> str:
    """ "mostly random (71 %), patch 20 %"; the largest first."""
    if profile.kinds is None:
        return "not told: too few errors"
    ordered = sorted(profile.kinds.items(), key=lambda item: -item[1])
    (first, share), *rest = [(name, share) for name, share in ordered if share >= SMALL]
    word = "mostly " if rest and share > 0.5 else ""
    return ", ".join([f"{word}{first} {share:.0%}", *(f"{name} {share:.0%}" for name, share in rest)])


def sentences(profile: NoiseProfile) -> list[str]:
    """What it means and what to do, one thought each."""
    if profile.clean:
        return [NO_ERRORS]
    if profile.kinds is None or profile.kind is None:
        return [TOO_FEW]
    meaning, advice = MEANINGS[profile.kind]
    pairs = [f"{pair.true} given as {pair.given}" for pair in profile.pairs[:3]]
    most = f"Most of them: {', '.join(pairs)}." if pairs and profile.kind != "random" else ""
    return [meaning, *([most] if most else []), advice]
