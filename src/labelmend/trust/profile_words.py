"""The noise profile in words for people: what was found, what it means, what to do about it.

Knows a profile; does not know where the words are shown.
"""

from __future__ import annotations

from labelmend.decision.verdict import APART, Verdict
from labelmend.trust.profile import CLEAN, Estimate, NoiseProfile

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
NO_ERRORS = "No evidence of more than a few wrong labels."
NONE_SCATTERED = "No sign of scattered errors; errors that sit together could not be seen here."
UNTOLD = "How many labels are wrong cannot be told from these data."
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


def sentences(profile: NoiseProfile, verdict: Verdict | None = None) -> list[str]:
    """What it means and what to do, one thought each; no all-clear that the interval does not give."""
    if verdict is not None and verdict.cannot_tell:
        return [UNTOLD]
    if profile.rate.high < CLEAN:
        return [NO_ERRORS if verdict is None or verdict.classes == APART else NONE_SCATTERED]
    if profile.suspects == 0:
        return [f"No single label stands out as wrong, but up to {profile.rate.high:.0%} of them may be."]
    if profile.kinds is None or profile.kind is None:
        return [TOO_FEW]
    meaning, advice = MEANINGS[profile.kind]
    pairs = [f"{pair.true} given as {pair.given}" for pair in profile.pairs[:3]]
    most = f"Most of them: {', '.join(pairs)}." if pairs and profile.kind != "random" else ""
    return [meaning, *([most] if most else []), advice]
