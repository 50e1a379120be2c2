import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelmend
from blobs import QUICK, blobs, plant
from labelmend import LabelCorrector
from labelmend.config import as_arguments
from labelmend.ensemble.nets import MLP
from labelmend.errors import ConfigError, DataError, LabelmendWarning

# Checks of scikit-learn that cannot hold, each with its reason. There are none: sample weights, several outputs and
# missing values are not offered, and the tags say so.
EXEMPTIONS: dict[str, str] = {}

FORMER = {"n_rounds", "n_branches", "packages_per_branch", "graph_k", "alpha", "hidden", "parameters"}


def quick(**changes):
    given = as_arguments({"random_state": 0, **QUICK, **changes})
    return LabelCorrector(**as_arguments(given))


# The checks use rows at random and classes of one or two samples, which are handled with a warning.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelmend.errors.LabelmendWarning")
@parametrize_with_checks([quick(n_rounds=1, hidden=32)], expected_failed_checks=lambda _: EXEMPTIONS)
def test_the_checks_of_scikit_learn_hold(estimator, check):
    check(estimator)


def test_it_takes_the_parameters_of_correct():
    of_correct = {name: p.default for name, p in inspect.signature(labelmend.correct).parameters.items()}
    own = {name: p.default for name, p in inspect.signature(LabelCorrector).parameters.items() if name not in FORMER}
    del own["random_state"]
    assert own == {name: of_correct[name] for name in own}


def test_fitting_is_the_same_as_correct():
    X, y = blobs(spread=2.0)
    fitted = quick(random_state=5).fit(X, y)
    result = labelmend.correct(X, y, seed=5, expert=QUICK)
    np.testing.assert_array_equal(fitted.corrected_labels_, result.labels)
    np.testing.assert_array_equal(fitted.certainty_, result.certainty)
    np.testing.assert_array_equal(fitted.confidence_, result.confidence)
    np.testing.assert_array_equal(fitted.status_, result.status)
    np.testing.assert_array_equal(fitted.transition_, result.transition)
    np.testing.assert_array_equal(fitted.predict_proba(X), result.model.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X), result.model.predict(X))
    assert fitted.noise_rate_ == result.noise_rate
    assert len(fitted.history_) == QUICK["n_rounds"]
    assert fitted.correction_.fingerprint == result.fingerprint
    assert fitted.n_features_in_ == 4


def test_corrected_labels_come_in_the_container_of_y():
    X, truth = blobs(n=90)
    given, _ = plant(truth, 0.1)
    names = np.array(["cat", "dog", "owl"])
    y = pd.Series(names[given], index=range(5, 95), name="pet", dtype="category")
    corrected = quick().fit_correct(pd.DataFrame(X), y)
    pd.testing.assert_series_equal(corrected, pd.Series(names[truth], index=y.index, name="pet", dtype="category"))


def test_a_list_of_ints_can_be_scored():
    X, y = blobs()
    fitted = quick().fit(X.tolist(), y.tolist())
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.score(X, y.tolist()) == 1.0


def test_trusted_rows_keep_their_label():
    X, truth = blobs(n=150)
    given, wrong = plant(truth, 0.1)
    trusted = np.zeros(150, dtype=bool)
    trusted[wrong[0]] = True
    fitted = quick().fit(X, given, trusted=trusted)
    assert fitted.corrected_labels_[wrong[0]] == given[wrong[0]]
    assert fitted.certainty_[wrong[0]] == 1
    np.testing.assert_array_equal(fitted.corrected_labels_[wrong[1:]], truth[wrong[1:]])
    np.testing.assert_array_equal(quick().fit_correct(X, given, trusted), fitted.corrected_labels_)


@pytest.mark.parametrize(
    "y",
    [
        [None, "a", "b"] * 20,
        np.array([np.nan, 0.0, 1.0] * 20),
        np.array(["a", np.nan, "b"] * 20, dtype=object),
        pd.Series([pd.NA, 0, 1] * 20, dtype="Int64"),
    ],
)
def test_missing_labels_are_refused_with_the_way_out(y):
    X, _ = blobs()
    with pytest.raises(DataError, match=r"labels .* 20 .*`labelmend\.correct`"):
        quick().fit(X, y)


def test_rows_that_are_not_finite_are_named():
    X, y = blobs()
    X[7, 0] = np.inf
    with pytest.raises(DataError, match=r"rows 7"):
        quick().fit(X, y)


def test_a_column_of_labels_is_made_flat_with_a_warning():
    X, y = blobs()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        fitted = quick().fit(X, y[:, None])
    assert fitted.corrected_labels_.shape == (60,)


def test_sparse_rows_are_fitted_and_predicted():
    X, y = blobs(spread=2.0)
    sparse, dense = quick().fit(scipy.sparse.csc_array(X), y), quick().fit(X, y)
    np.testing.assert_array_equal(sparse.predict_proba(scipy.sparse.coo_array(X)), dense.predict_proba(X))


def test_names_of_columns_are_remembered():
    X, y = blobs()
    table = pd.DataFrame(X, columns=list("abcd"))
    fitted = quick().fit(table, y)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(table[list("badc")])


def test_predicting_before_fitting_is_refused():
    X, _ = blobs()
    with pytest.raises(NotFittedError):
        quick().predict(X)


def test_it_is_a_step_of_a_pipeline():
    X, truth = blobs(n=90)
    given, wrong = plant(truth, 0.1)
    trusted = np.zeros(90, dtype=bool)
    trusted[wrong[0]] = True
    line = make_pipeline(StandardScaler(), quick()).fit(X, given, labelcorrector__trusted=trusted)
    assert (line.predict(X) == truth).mean() >= 0.95
    assert line[-1].corrected_labels_[wrong[0]] == given[wrong[0]]


@pytest.mark.slow
def test_a_grid_search_tries_parameters_and_refits_the_best():
    X, y = blobs(n=90)
    grid = {"expert": [{**QUICK, "n_rounds": 1, "alpha": alpha} for alpha in (0.5, 0.9)], "precision": [0.0, 0.9]}
    search = GridSearchCV(quick(), grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ == 1.0
    assert search.best_estimator_.correction_.config.alpha == search.best_params_["expert"]["alpha"]


def test_former_arguments_are_taken_with_a_warning():
    X, y = blobs()
    estimator = quick().set_params(alpha=0.6, parameters={"lr": 0.04})
    with pytest.warns(LabelmendWarning, match='"alpha": 0.6, "lr": 0.04'):
        settings = estimator.fit(X, y).correction_.config
    assert (settings.alpha, settings.lr) == (0.6, 0.04)


def test_cross_validation_works_on_strings():
    X, y = blobs(n=90)
    assert cross_val_score(quick(n_rounds=1), X, np.array(["cat", "dog", "owl"])[y], cv=3).min() == 1.0


def test_a_clone_has_the_parameters_and_nothing_learned():
    X, y = blobs()
    fitted = quick(net=net_of_eight, gamma=2.0).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(X, y).predict_proba(X), fitted.predict_proba(X))


def test_a_fitted_one_survives_pickling_with_its_correction():
    X, y = blobs()
    fitted = quick().fit(pd.DataFrame(X), pd.Series(y, name="pet"))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(pd.DataFrame(X)), fitted.predict_proba(pd.DataFrame(X)))
    pd.testing.assert_series_equal(again.correction_.labels_for(review="given"), fitted.correction_.labels)


def net_of_eight(n_inputs, n_classes):
    return MLP(n_inputs, 8, n_classes)


def test_a_net_and_further_parameters_reach_the_run():
    X, y = blobs()
    fitted = quick(net=net_of_eight, gamma=2.0, resplit=False).fit(X, y)
    assert fitted.correction_.model.net.hidden.out_features == 8
    assert (fitted.correction_.config.gamma, fitted.correction_.config.resplit) == (2.0, False)


def test_what_is_none_stays_with_the_preset():
    X, y = blobs()
    config = (
        LabelCorrector("paper", expert={"n_rounds": 1, "hidden": 8}, random_state=0, device="cpu")
        .fit(X, y)
        .correction_.config
    )
    assert (config.preset, config.alpha, config.graph_k, config.n_rounds) == ("paper", 0.99, 50, 1)


@pytest.mark.parametrize("name", ["seed", "preset", "review_below"])
def test_expert_may_not_repeat_an_argument(name):
    X, y = blobs()
    with pytest.raises(ConfigError, match=name):
        quick().set_params(expert={name: 1}).fit(X, y)


def test_an_unknown_further_parameter_is_refused_when_fitting():
    X, y = blobs()
    estimator = quick().set_params(expert={"gama": 2.0})
    with pytest.raises(ConfigError, match="gama is not a parameter; did you mean gamma"):
        estimator.fit(X, y)


@pytest.mark.slow
def test_random_state_decides():
    X, y = blobs(spread=3.0)

    def probabilities(random_state):
        """What the weights give for a few samples: no two seeds give the same (confidence may be 1 everywhere)."""
        return quick(random_state=random_state).fit(X, y).predict_proba(X[:5]).tolist()

    assert probabilities(1) == probabilities(1) != probabilities(2)
    assert probabilities(np.random.RandomState(1)) == probabilities(np.random.RandomState(1))
    source = np.random.RandomState(1)
    assert probabilities(source) != probabilities(source), "a generator moves on"
    assert probabilities(None) != probabilities(None)
