"""Small random inputs. Values are multiples of 1/8: sums are exact; ties, duplicates and zeros are common."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def eighths(shape, low=-8, high=8):
    return hnp.arrays(np.int64, shape, elements=st.integers(low, high)).map(lambda a: a / 8)


def feature_matrices(min_rows=2, max_rows=14, max_columns=4):
    return st.tuples(st.integers(min_rows, max_rows), st.integers(1, max_columns)).flatmap(eighths)


def label_arrays(size, n_classes, unlabelled=True):
    return hnp.arrays(np.int64, size, elements=st.integers(-1 if unlabelled else 0, n_classes - 1))


@st.composite
def labelled_features(draw, n_classes=3, max_rows=24):
    """Features and labels of the same samples; some without a label, classes of any size, some empty."""
    features = draw(feature_matrices(min_rows=1, max_rows=max_rows, max_columns=3))
    return features, draw(label_arrays(len(features), n_classes))


@st.composite
def suggestions(draw, n_classes=3, max_rows=6, max_suggestions=6):
    """Keyword arguments of a vote: suggested labels (-1 abstains), certainties, given and current labels, trusted."""
    n, s = draw(st.integers(1, max_rows)), draw(st.integers(1, max_suggestions))
    return {
        "suggested": draw(label_arrays((n, s), n_classes)),
        "omega": draw(eighths((n, s), low=0)),
        "given": draw(label_arrays(n, n_classes)),
        "current": draw(label_arrays(n, n_classes)),
        "C": n_classes,
        "fixed": draw(hnp.arrays(np.bool_, n)),
    }


@st.composite
def predictions(draw, n_classes=3, max_rows=6):
    """Logits, labels and certainties of one batch."""
    n = draw(st.integers(1, max_rows))
    logits = draw(eighths((n, n_classes), low=-24, high=24))
    return logits, draw(label_arrays(n, n_classes, unlabelled=False)), draw(eighths(n, low=0))
