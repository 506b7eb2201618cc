"""The names that are kept are timm's, so that timm, and torch with it, is not imported for them."""

import subprocess
import sys

from timm.data.imagenet_info import ImageNetInfo

from headsmith.models.class_names import imagenet_names


def test_the_classes_of_imagenet_are_those_of_timm():
    info = ImageNetInfo("imagenet-1k")
    ids, synonyms, first = imagenet_names("imagenet-1k")
    assert list(ids) == info.label_names()
    assert list(synonyms) == info.label_descriptions()
    assert first[0] == "tench"
    assert len(imagenet_names("imagenet-12k")[0]) == ImageNetInfo("imagenet-12k").num_classes()


def test_they_need_no_torch():
    code = "import sys; from headsmith.models.class_names import imagenet_names; imagenet_names('imagenet-1k')"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)
