"""The probe finds the setup that a file was made for, and is silent where that is the declared one."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from PIL import Image
from scipy.stats import binomtest

from headsmith.core.errors import InputError
from headsmith.evaluate.held_out_record import HeldOutSource
from headsmith.evaluate.measuring.setup_check import probed
from headsmith.evaluate.open_held_out import open_data
from headsmith.evaluate.zoo import open_candidate, other_crops, power, probe
from headsmith.evaluate.zoo.setups import NORMALISATIONS

COLOURS = np.array([[230, 120, 40], [40, 120, 230], [120, 40, 230], [60, 60, 60], [190, 190, 190], [120, 230, 40]])
NEAREST = "(float[N,3,8,8] images) => (float[N,6] scores) { p = GlobalAveragePool(images) f = Flatten(p) "
NEAREST += "scores = Gemm<transB=1>(f, w, b) }"
SETUPS = [(name, order) for name in NORMALISATIONS for order in ("rgb", "bgr")]


def recipe_of(name, order):
    scale, mean, std = NORMALISATIONS[name]
    step = 1 if order == "rgb" else -1
    return {"scale": scale, "mean": list(mean)[::step], "std": list(std)[::step], "channel_order": order}


@pytest.fixture
def nearest(onnx_file, recipe_file, labels_file, only):
    """A function: a file that names the nearest of six colours, if it is fed as one setup says; declared as another."""

    def make(made_for, declared, graph=NEAREST):
        recipe = recipe_of(*made_for)
        colours = COLOURS[:, :: 1 if made_for[1] == "rgb" else -1]
        seen = (colours * recipe["scale"] - recipe["mean"]) / recipe["std"]
        weights = {"w": 2 * seen, "b": -(seen**2).sum(1)}
        path = onnx_file(graph, **{key: value.astype(np.float32) for key, value in weights.items()})
        return only(path, preprocessing=recipe_file(**recipe_of(*declared)), labels=labels_file(6))

    return make


@pytest.fixture(scope="module")
def sample():
    """128 images in these colours, with noise, and which colour each has."""
    random = np.random.default_rng(0)
    labels = np.arange(128) % 6
    noise = random.normal(0, 20, (128, 8, 8, 3))
    return (COLOURS[labels][:, None, None] + noise).clip(0, 255).astype(np.uint8), labels


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_silent_where_the_declared_setup_is_right(nearest, sample, setup):
    found = nearest(setup, setup)
    assert warned(found, open_candidate(found, threads=1), *sample) == []


def warned(*asked):
    return [warning.message for warning in probe(*asked)]


@pytest.mark.parametrize(
    ("made_for", "declared"),
    [
        (("Caffe's mean in 0..255", "bgr"), ("ImageNet's mean and deviation", "rgb")),
        (("ImageNet's mean and deviation", "rgb"), ("pixels in 0..255", "rgb")),
        (("Caffe's mean in 0..255", "rgb"), ("pixels in -1..1", "bgr")),
    ],
)
def test_the_right_setup_is_named(nearest, sample, made_for, declared):
    found = nearest(made_for, declared)
    warnings = warned(found, open_candidate(found, threads=1), *sample)
    name = f"{made_for[0]}, {made_for[1].upper()} would be clearly better than the declared setup: 128 of 128 images"
    assert any(warning.startswith(name) for warning in warnings)


def test_red_for_blue(nearest, sample):
    recipe = "pixels in 0..1"
    found = nearest((recipe, "bgr"), (recipe, "rgb"))
    (warning,) = warned(found, open_candidate(found, threads=1), *sample)
    assert warning.startswith("the channel order BGR would be clearly better than the declared setup: 128 of 128")


def test_too_few_images_cannot_tell(nearest, sample):
    recipe = "pixels in 0..1"
    found = nearest((recipe, "bgr"), (recipe, "rgb"))
    pixels, labels = sample
    assert warned(found, open_candidate(found, threads=1), pixels[:6], labels[:6]) == []


def test_one_answer_for_all_on_an_input_out_of_range(nearest, sample):
    found = nearest(("ImageNet's mean and deviation", "rgb"), ("pixels in 0..255", "rgb"))
    warnings = warned(found, open_candidate(found, threads=1), *sample)
    assert warnings[0].startswith("one class takes 100 % of the answers, and its input reaches 255; is it fed as it")


@pytest.mark.parametrize(
    ("order", "warning"),
    [
        ([1, 2, 3, 4, 5, 0], "labels shifted up by one would"),
        ([5, 0, 1, 2, 3, 4], "labels shifted down by one (a background class, or ids that start at 1) would"),
    ],
)
def test_shifted_labels(nearest, sample, order, warning):
    recipe = ("pixels in 0..1", "rgb")
    found = nearest(recipe, recipe)
    pixels, labels = sample
    (said,) = warned(found, open_candidate(found, threads=1), pixels, np.array(order)[labels])
    assert said.startswith(warning)


def test_alphabetical_against_synset_order(nearest, sample):
    """The outputs are declared in the order of the WordNet ids, and are in that of the names."""
    recipe = ("pixels in 0..1", "rgb")
    declared = ("tench", "goldfish", "shark", "cock", "hen", "ostrich")
    found = replace(nearest(recipe, recipe), names=(("n1", "n2", "n3", "n4", "n5", "n6"), declared))
    pixels, colours = sample
    labels = np.array([declared.index(name) for name in sorted(declared)])[colours]
    (said,) = warned(found, open_candidate(found, threads=1), pixels, labels)
    assert said.startswith("outputs in the order of the sorted names ('cock', ...) would be clearly better")


def test_probabilities_that_the_graph_hides(nearest, sample):
    tail = "scores = Gemm<transB=1>(f, w, b)"
    hidden = "z = Gemm<transB=1>(f, w, b) q = Softmax(z) one = CastLike(q, q) scores = Max(one, q)"
    recipe = ("pixels in 0..1", "rgb")
    found = nearest(
        recipe, recipe, NEAREST.replace(tail, hidden.replace("one = CastLike(q, q) ", "").replace("one", "q"))
    )
    warnings = warned(found, open_candidate(found, threads=1), *sample)
    assert warnings == ["its outputs are probabilities, not logits, so that NLL and calibration would be wrong"]


def store(folder, name, array):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())


def test_answers_that_are_stored_beside_the_file(nearest, sample):
    recipe = ("pixels in 0..1", "rgb")
    found = nearest(recipe, recipe)
    model = open_candidate(found, threads=1)
    folder, images = found.path.parent / "test_data_set_0", np.zeros((1, 3, 8, 8), np.float32)
    (right,) = model.session.run(None, {"images": images})
    store(folder, "input_0.pb", images)
    store(folder, "output_0.pb", right)
    assert warned(found, model, *sample) == []
    store(folder, "output_0.pb", right + 1)
    assert warned(found, model, *sample) == [
        "it answers otherwise than its authors stored in test_data_set_0: another file, or a damaged one?"
    ]
    (folder / "output_0.pb").write_bytes(b"no tensor")
    with pytest.raises(ValueError, match=r"output_0.pb: not a stored tensor .*; download it again"):
        warned(found, model, *sample)


def test_a_bundle_is_fed_right_and_not_normalised_twice(tiny_bundle, tiny_run, only):
    """Its file normalises inside: it takes the pixels as they are."""
    found = only(tiny_bundle.path)
    model = open_candidate(found, threads=1)
    colours = np.random.default_rng(0).integers(0, 256, (96, 1, 1, 3), dtype=np.uint8).repeat(32, 1).repeat(32, 2)
    best = model.run(colours).logits.argmax(1)
    np.testing.assert_array_equal(model.feed(colours).transpose(0, 2, 3, 1), colours)
    assert warned(found, model, colours, best) == []
    warnings = warned(found, model, np.ascontiguousarray(colours[..., ::-1]), best)
    assert [warning for warning in warnings if warning.startswith("the channel order BGR would be clearly better")]


def test_rows_with_nan_are_no_answers(nearest, sample, monkeypatch):
    """The first answer of numpy to NaN is class 0, for every image."""
    found = nearest(("pixels in 0..1", "rgb"), ("pixels in 0..1", "rgb"))
    model = open_candidate(found, threads=1)
    monkeypatch.setattr(model, "_scores", lambda fed, _: np.full((len(fed), len(found.labels)), np.nan, np.float32))
    assert warned(found, model, *sample) == []


GATHER = (
    "(float[N,3,8,8] images) => (float[N,6] scores) { many = Constant<value = float {63.0}>() z = Mul(images, many) "
)
GATHER += "i = Cast<to=7>(z) table = Gather(levels, i) p = GlobalAveragePool(table) f = Flatten(p) "
GATHER += "scores = Gemm<transB=1>(f, w, b) }"


@pytest.mark.parametrize(("declared", "count"), [("rgb", 0), ("bgr", 1)])
def test_a_setup_that_the_file_cannot_run_is_left_out(
    onnx_file, recipe_file, labels_file, only, sample, declared, count
):
    """The file looks its pixels, in 0..1, up in a table of 64 levels; others lie outside of it."""
    seen = COLOURS / 255
    weights = {"w": 2 * seen, "b": -(seen**2).sum(1), "levels": np.arange(64) / 63}
    path = onnx_file(GATHER, **{key: value.astype(np.float32) for key, value in weights.items()})
    found = only(path, preprocessing=recipe_file(**recipe_of("pixels in 0..1", declared)), labels=labels_file(6))
    model = open_candidate(found, threads=1)
    with pytest.raises(InputError, match="cannot run inputs"):
        model.answer(model.fed_by(replace(found.preprocessing, scale=1.0), sample[0][:4]))
    said = warned(found, model, *sample)
    assert [warning.partition(" would")[0] for warning in said] == ["the channel order RGB"] * count


@pytest.mark.parametrize(("edge", "right"), [(24, False), (8, True)])
def test_resize_and_crop_are_tried(nearest, tmp_path, edge, right):
    """The colour lies around a middle of noise, which is all that remains where an edge of 24 is cropped to 8."""
    random = np.random.default_rng(0)
    for label, colour in enumerate(COLOURS):
        (tmp_path / "data" / f"class {label}").mkdir(parents=True)
        for number in range(10):
            pixels = np.broadcast_to(colour, (48, 48, 3)) + random.normal(0, 10, (48, 48, 3))
            pixels[16:32, 16:32] = random.choice(COLOURS)
            image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            image.save(tmp_path / "data" / f"class {label}" / f"{number}.png")
    found = nearest(("pixels in 0..1", "rgb"), ("pixels in 0..1", "rgb"))
    found = replace(found, preprocessing=replace(found.preprocessing, resize_size=(edge, edge), crop_size=(8, 8)))
    model = open_candidate(found, threads=1)
    held_out = open_data(HeldOutSource(str(tmp_path / "data"))).for_classifier(model.metadata, found.names)
    told, (note,) = probed(found, model, held_out, 32)
    warnings = [(one.code, one.message) for one in told]
    assert note.startswith("sanity probe: 60 images: only drops above ")
    if right:
        assert warnings == []
    else:
        assert [
            said for code, said in warnings if code == "other-setup" and said.startswith("resize to ") and "8x8" in said
        ]


def test_what_is_declared_is_not_among_the_other_crops(nearest):
    declared = nearest(("pixels in 0..1", "rgb"), ("pixels in 0..1", "rgb")).preprocessing
    others = other_crops(declared)
    assert others
    assert declared not in others.values()
    assert {recipe.crop_size for recipe in others.values()} == {declared.crop_size}
    for name, recipe in others.items():
        assert name not in other_crops(recipe)


@pytest.mark.parametrize("n", [30, 40, 128])
def test_what_the_images_can_show_is_said(nearest, sample, n):
    """As many images as scipy's exact test asks for, all in favour of another setup, are seen; one fewer are not."""
    found = nearest(("pixels in 0..1", "bgr"), ("pixels in 0..1", "rgb"))
    model, pixels, other = open_candidate(found, threads=1), sample[0][:n], sample[1][:n]
    tried = 9 + 2  # five normalisations in two orders less the declared one; labels shifted up and down
    fewest = next(d for d in range(1, 100) if binomtest(d, d).pvalue <= 0.01 / tried)
    assert power(found, model, pixels, {}) == (
        f"sanity probe: {n} images: only drops above {100 * fewest / n:.1f} points of the declared setup against "
        "another would be seen"
    )
    declared = model.run(pixels).logits.argmax(1)
    differ = np.flatnonzero(declared != other)
    for won in (fewest, fewest - 1):
        labels = np.where(declared == other, declared, 3)  # neither has these right
        labels[differ[:won]] = other[differ[:won]]
        warnings = warned(found, model, pixels, labels)
        assert any("would be clearly better" in warning for warning in warnings) == (won == fewest)


def test_few_images_are_said_to_be_too_few(nearest, sample):
    found = nearest(("pixels in 0..1", "bgr"), ("pixels in 0..1", "rgb"))
    said = power(found, open_candidate(found, threads=1), sample[0][:6], {})
    assert said == "sanity probe: 6 images are too few to try other setups than the declared one"
