"""Which names of files are those of images."""

from PIL import Image

from headsmith.models.images import FORMATS
from headsmith.trainer.features.images.folder_source import IMAGE_SUFFIXES


def test_every_name_that_pil_gives_a_format_that_is_read_is_that_of_an_image():
    """An MPO is several JPEG files, of which the first is taken."""
    Image.init()
    known = {ending for ending, name in Image.registered_extensions().items() if name in {*FORMATS, "MPO"}}
    assert known - IMAGE_SUFFIXES == set()
