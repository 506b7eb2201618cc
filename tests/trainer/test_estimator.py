"""`HeadClassifier` among scikit-learn's own estimators and checks."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import headsmith
from headsmith import HeadClassifier
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, TrainConfig
from headsmith.trainer.presets import preset

TOPK = {"loss": "softsort", "p_k": (0.5, 0.5), "learning_rate": 0.03}


@parametrize_with_checks([HeadClassifier(epochs=100)])  # the 3,000 steps of the default take minutes
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    pixels, labels = load_digits(return_X_y=True)
    return train_test_split(pixels / 16, labels, random_state=0, stratify=labels)


@pytest.mark.parametrize(
    "settings", [{"learning_rate": 0.03, "epochs": 200}, TOPK | {"epochs": 200}, {"optimizer": "lbfgs", "epochs": 30}]
)
def test_as_accurate_as_logistic_regression(digits, settings):
    train, test, labels, expected = digits
    ours = HeadClassifier(random_state=0, **settings).fit(train, labels)
    peer = LogisticRegression(max_iter=1000).fit(train, labels)
    assert ours.score(test, expected) > peer.score(test, expected) - 0.02
    assert ours.predict_proba(test).sum(axis=1) == pytest.approx(1)


def test_topk_is_scikit_learns(digits):
    train, test, labels, expected = digits
    model = HeadClassifier(epochs=5, random_state=0).fit(train, labels)
    scores = model.decision_function(test)
    for k in (1, 3, 9):
        assert model.score_topk(test, expected, k) == pytest.approx(top_k_accuracy_score(expected, scores, k=k))
    assert (model.predict_topk(test, 4)[:, 0] == model.predict(test)).all()
    assert model.predict_topk(test, 4).shape == (len(test), 4)
    with pytest.raises(InputError, match="k: 11 found, expected 1 to 10, the number of classes"):
        model.predict_topk(test, 11)


def test_equal_scores_come_in_the_order_of_the_classes():
    model = HeadClassifier(epochs=1).fit(np.eye(4), ["d", "b", "a", "c"])
    model.head_.load_state_dict({name: torch.zeros_like(part) for name, part in model.head_.state_dict().items()})
    assert model.predict_topk(np.zeros((1, 4)), 4).tolist() == [["a", "b", "c", "d"]]


def test_in_a_pipeline_under_a_grid_search():
    features, labels = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[labels]
    pipeline = make_pipeline(StandardScaler(), HeadClassifier(epochs=60, random_state=0))
    grid = {"headclassifier__learning_rate": [1e-6, 0.1], "headclassifier__loss": ["softmax", "softsort"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(features, names)
    assert search.best_params_["headclassifier__learning_rate"] == 0.1
    assert search.best_score_ > 0.93
    assert set(search.predict(features)) <= set(names)


def test_a_grid_of_numpys_numbers():
    features, labels = load_iris(return_X_y=True)
    grid = {
        "epochs": np.arange(2, 4),
        "loss": np.array(["softmax", "softsort"]),
        "balanced": np.array([True, False]),
        "validation_fraction": np.array([0.25], np.float32),
        "select": [[0.5, 0.5]],
    }
    model = HeadClassifier(early_stopping=True, random_state=np.int64(0))
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(features, labels)
    plain = {name: getattr(search.best_estimator_.config_, name) for name in ("epochs", "loss", "balanced")}
    assert plain == {name: search.best_params_[name] for name in plain}
    assert [type(value) for value in plain.values()] == [int, str, bool]


def test_calibrated():
    features, labels = load_iris(return_X_y=True)
    model = CalibratedClassifierCV(HeadClassifier(epochs=60, learning_rate=0.1, random_state=0), cv=3)
    assert model.fit(features, labels).score(features, labels) > 0.9


def test_two_classes_have_one_score_a_row():
    features, labels = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(features)
    model = HeadClassifier(loss="neuralsort", epochs=30, random_state=0).fit(rows, labels)
    assert model.config_.p_k == (1.0,)
    scores = model.decision_function(rows)
    assert scores.shape == (len(rows),)
    assert ((scores > 0) == model.predict(rows)).all()
    assert model.predict_proba(rows)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))
    assert model.score(rows, labels) > 0.95


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (2, (1,)),
        (3, (0.5, 0.5)),
        (4, (0.5, 0, 0.5)),
        (5, (0.5, 0, 0, 0.5)),
        (6, (0.5, 0, 0, 0, 0.5)),
        (9, (0.5, 0, 0, 0, 0.5)),
    ],
)
def test_the_default_p_k_of_few_classes(classes, expected):
    model = HeadClassifier(loss="softsort", epochs=1).fit(np.eye(classes), np.arange(classes))
    assert model.config_.p_k == pytest.approx(expected)


def test_early_stopping_holds_rows_out_class_by_class(digits):
    train, _, labels, _ = digits
    model = HeadClassifier(early_stopping=True, validation_fraction=0.2, patience=3, epochs=200, learning_rate=0.1)
    model.set_params(random_state=0).fit(train, labels)
    assert model.n_iter_ == len(model.history_) < 200
    assert model.history_[0].val.n == pytest.approx(0.2 * len(train), abs=1)
    best = max(epoch.val.score for epoch in model.history_)
    stopped = model.history_[-1 - 3].val.score
    assert stopped == best
    assert HeadClassifier(epochs=1).fit(train, labels).history_[0].val is None


def test_few_rows_of_a_class_are_held_out_where_there_are_two():
    labels = np.repeat(np.arange(6), [1, 2, 2, 3, 10, 20])
    model = HeadClassifier(early_stopping=True, epochs=1, random_state=0).fit(np.eye(6)[labels], labels)
    assert model.history_[0].val.n == 0 + 1 + 1 + 1 + 1 + 2
    with pytest.raises(InputError, match="early_stopping: no class has two rows"):
        HeadClassifier(early_stopping=True).fit(np.eye(5), np.arange(5))


def test_select_chooses_the_epoch(digits):
    train, _, labels, _ = digits
    model = HeadClassifier(early_stopping=True, select=[0.25, 0, 0.75], epochs=3, learning_rate=1.0, random_state=0)
    chosen = model.fit(train, labels).history_[-1].val
    assert min(chosen.top1, chosen.top5) <= chosen.score <= max(chosen.top1, chosen.top5)
    assert chosen.score not in (chosen.top1, chosen.top5)


def test_starts_from_a_run(tiny_run):
    features, labels = FeatureSet.load(tiny_run.record.features.path).arrays("train")
    names = np.array(tiny_run.class_names)[labels]
    for start in (tiny_run.path, tiny_run.path / "head.safetensors"):
        model = HeadClassifier(start=str(start), epochs=1, learning_rate=1e-30).fit(features, names)
        with torch.inference_mode():
            expected = tiny_run.head(features).argmax(1).numpy()
        assert (model.predict(features) == np.array(tiny_run.class_names)[expected]).all()
    with pytest.raises(InputError, match="the classes must be the same"):
        HeadClassifier(start=str(tiny_run.path)).fit(features, labels)


@pytest.mark.parametrize("settings", [{}, {"head": "norm_linear"}])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_coefficients_are_those_of_the_decision_function(settings, load):
    features, labels = load(return_X_y=True)
    rows = StandardScaler().fit_transform(features)
    model = HeadClassifier(epochs=5, random_state=0, **settings).fit(rows, labels)
    peer = LogisticRegression(max_iter=1000).fit(rows, labels)
    assert (model.coef_.shape, model.intercept_.shape) == (peer.coef_.shape, peer.intercept_.shape)
    scores = rows @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(scores.squeeze(), model.decision_function(rows), atol=1e-4)
    peer.coef_, peer.intercept_ = model.coef_, model.intercept_
    np.testing.assert_allclose(peer.predict_log_proba(rows), model.predict_log_proba(rows), atol=1e-4)


def test_a_head_that_is_not_affine_has_no_coefficients(digits):
    train, _, labels, _ = digits
    assert not hasattr(HeadClassifier(head="mlp", hidden=8, epochs=1).fit(train, labels), "coef_")
    assert not hasattr(HeadClassifier(), "coef_")


def test_what_a_head_does_not_read_is_warned_of(digits):
    train, _, labels, _ = digits
    with pytest.warns(UserWarning, match="dropout: 0.1 found, but `optimizer` lbfgs.* does not read it"):
        HeadClassifier(optimizer="lbfgs", dropout=0.1, epochs=1).fit(train, labels)


def test_a_preset_is_a_set_of_parameters():
    published = preset("paper/imagenet1k", "bitonic")
    assert HeadClassifier(**published).get_params().items() >= published.items()


def test_a_seed_fixes_the_head_and_pickling_keeps_it(digits):
    train, test, labels, _ = digits
    first, second, third = (
        HeadClassifier(epochs=2, random_state=seed).fit(train, labels).decision_function(test) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
    model = HeadClassifier(epochs=2, random_state=1).fit(train, labels)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(test), first)
    assert clone(model).get_params() == model.get_params()


def test_the_head_can_be_used_without_scikit_learn(digits):
    train, test, labels, _ = digits
    model = HeadClassifier(head="norm_linear", epochs=2, random_state=0).fit(train, labels)
    with torch.inference_mode():
        logits = model.head_(torch.from_numpy(test).float()).numpy()
    np.testing.assert_allclose(logits, model.decision_function(test), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "neuralsrt"}, "loss: 'neuralsrt' found, .*did you mean neuralsort"),
        ({"loss": "softsort", "p_k": (0.5, 0, 0, 0.5)}, "4 weights, for top-1 to top-4, but only 3 classes"),
        ({"epochs": 0}, "epochs: 0 found, expected a whole number above 0"),
        ({"loss": "softsort", "p_k": ".5,.5"}, "p_k: '.5,.5' found, expected weights of top-1, top-2"),
        ({"validation_fraction": 2}, "validation_fraction: 2 found, expected a share above 0 and below 1"),
        ({"start": "gone"}, "start: 'gone' found, expected random, zeros, "),
        ({"learning_rate": 1e38}, "the loss is nan in epoch 2; lower `learning_rate`"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    features, labels = load_iris(return_X_y=True)
    with pytest.raises(InputError, match=message):
        HeadClassifier(**settings).fit(features, labels)


def test_values_beyond_float32():
    with pytest.raises(InputError, match="beyond the range of float32"):
        HeadClassifier().fit(np.array([[1e300], [0.0]]), [0, 1])


def test_defaults_are_as_accurate_as_logistic_regression_on_columns_of_any_scale():
    features, labels = load_wine(return_X_y=True)  # columns from 0.1 to 1,680
    peer = make_pipeline(StandardScaler(), LogisticRegression())
    ours = HeadClassifier(random_state=0)
    means = [cross_val_score(model, features, labels, cv=3).mean() for model in (ours, peer)]
    assert means[0] > means[1] - 0.03


def test_parameters_are_the_settings_of_train():
    defaults = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
    found = HeadClassifier().get_params()
    own = {name: found.pop(name) for name in ("early_stopping", "validation_fraction", "random_state")}
    assert own == {"early_stopping": False, "validation_fraction": 0.1, "random_state": None}
    assert found == {name: value for name, value in defaults.items() if name != "seed"}


def test_public_name():
    assert headsmith.HeadClassifier is HeadClassifier


def test_what_estimators_refuse_in_words_of_python():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="early_stopping: 'x' found, expected True or False"):
        HeadClassifier(early_stopping="x").fit(X, y)
    with pytest.raises(InputError, match="X: a masked array found"):
        HeadClassifier().fit(np.ma.masked_array(X, X > 5), y)
    with pytest.warns(UserWarning, match="it belongs to `head` mlp"):
        fitted = HeadClassifier(hidden=7, epochs=2).fit(X, y)
    with pytest.raises(InputError, match="y: 9 found, which is none of the 3 classes"):
        fitted.score_topk(X, y * 9, k=1)
    with pytest.raises(InputError, match=r"y: shape \(3,\) found, expected \(150,\)"):
        fitted.score_topk(X, y[:3], k=1)


def test_a_head_that_ran_away_is_warned_of(digits):
    train, _, labels, _ = digits
    with pytest.warns(
        UserWarning,
        match=r"^the training loss .* is above .*, that of equal scores .*; lower `learning_rate` \(now 1e\+30\)$",
    ):
        HeadClassifier(learning_rate=1e30, epochs=3, random_state=0).fit(train, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HeadClassifier(epochs=3, random_state=0).fit(train, labels)


TENSORS = {
    "bfloat16": lambda X: torch.tensor(X).bfloat16(),
    "with a gradient": lambda X: torch.tensor(X).bfloat16().float().requires_grad_(),
    "with a negative bit": lambda X: torch._neg_view(-torch.tensor(X).bfloat16().float()),
}


@pytest.mark.parametrize("made", TENSORS.values(), ids=TENSORS)
def test_tensors_are_the_values_that_they_hold(made):
    X, y = load_iris(return_X_y=True)
    plain = TENSORS["bfloat16"](X).float().numpy()
    one, other = (HeadClassifier(epochs=2, random_state=0) for _ in range(2))
    one.fit(made(X), torch._neg_view(-torch.tensor(y)))
    assert (one.decision_function(made(X)) == other.fit(plain, y).decision_function(plain)).all()
    assert one.score_topk(made(X), torch.tensor(y), k=1) == other.score(plain, y)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        (torch.eye(6).to_sparse(), [0, 1] * 3, "X: a sparse tensor found"),
        (torch.eye(6).to("meta"), [0, 1] * 3, "X: a tensor without values"),
        (np.array([[{}]] * 6, object), [0, 1] * 3, "X: float\\(\\) argument must be .*, not 'dict'; expected an array"),
        (np.zeros(6, [("a", "f4"), ("b", "f4")]), [0, 1] * 3, "X: .*; expected an array"),
        (np.eye(6), np.array(["a", 1, None] * 2, object), "y: 'a' in row 0 and 1 in row 1, expected numbers or text"),
        (np.eye(6), np.array([1, 1, "a"] * 2, object), "y: 1 in row 0 and 'a' in row 2, expected numbers or text"),
    ],
)
def test_values_that_are_no_numbers_or_classes(X, y, said):
    with pytest.raises(InputError, match=f"^{said}"):
        HeadClassifier(epochs=1).fit(X, y)
